// The training step of the guide's CNN with XLA's CPU devices and with oneDNN, both with RMSprop: in turns, or one
// alone for comparison with TensorFlow (peers/tensorflow_step.py --xla).
//
//   bench_xla_step [ROUNDS [JSON]]        all contenders in turns, ratios
//   bench_xla_step --only NAME [SECONDS]  one contender alone
//   bench_xla_step --compile [ROUNDS]     extra time of the first call, with compilation and with a cached program
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dist/data/example.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/hlo/backend.hpp>
#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/hlo/image_layers.hpp>
#include <dist/nn/hlo/traced_loss.hpp>
#include <dist/nn/hlo/traced_optimizer.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/strategy/compiled_step.hpp>

#include "support/cnn_training.hpp"
#include "support/training_steps.hpp"

namespace {

namespace nn = dist::nn;
using OnXla = dist::Mirrored<dist::ThreadAllReduce, dist::Xla>;
using Batch = dist::data::Example<dist::Tensor<float>, dist::Tensor<std::int32_t>>;

/// Training steps of `replicas` replicas that share a global batch.
template <class Strategy, class Backend>
class Steps {
 public:
  Steps(std::size_t replicas, std::size_t global_batch, const dist::CompileOptions& options = {})
      : strategy_(replicas),
        batches_(replicas,
                 [&](std::size_t) {
                   bench::Images images{global_batch / replicas};
                   return Batch{std::move(images.x), std::move(images.y)};
                 }),
        step_(dist::compile(strategy_, Step{&training_, global_batch}, options)) {}

  void operator()() { last_ = strategy_.reduce(dist::sum, step_(batches_)); }

 private:
  using Training = bench::NetworkTraining<bench::Cnn, nn::RMSprop, Backend, Strategy>;
  struct Step {
    Training* training;
    std::size_t global_batch;
    auto operator()(auto& replica, const auto& batch) const {
      return training->step(replica, batch.x, batch.y, global_batch);
    }
  };

  Strategy strategy_;
  Training training_{strategy_};
  dist::PerReplica<Batch> batches_;
  decltype(dist::compile(std::declval<Strategy&>(), std::declval<Step>())) step_;
  double last_ = 0;
};

/// Runs one global step. Returns the number of images.
template <class Strategy, class Backend>
bench::Work make(std::size_t replicas) {
  constexpr std::size_t global_batch = 128;
  const auto steps = std::make_shared<Steps<Strategy, Backend>>(replicas, global_batch);
  return [steps] {
    (*steps)();
    return static_cast<double>(global_batch);
  };
}

const bench::NamedContender contenders[] = {
    {"xla_one", "nn::Xla, 1 x 128", [] { return make<OnXla, nn::Xla>(1); }},
    {"xla_two", "nn::Xla, 2 x 64", [] { return make<OnXla, nn::Xla>(2); }},
    {"onednn", "Mirrored<ThreadAllReduce>, nn::OneDnn, 2 x 64",
     [] { return make<dist::Mirrored<dist::ThreadAllReduce>, nn::OneDnn>(2); }},
};

constexpr bench::Quotient quotients[] = {
    {"XLA, one device over oneDNN, 2 replicas", "xla_one", "onednn"},
    {"XLA, two devices over oneDNN, 2 replicas", "xla_two", "onednn"},
    {"XLA, two devices over one", "xla_two", "xla_one"},
};

/// Extra seconds of a step's first call over its second: tracing, and compiling or loading the program.
double first_call(const std::string& folder) {
  Steps<OnXla, nn::Xla> steps{2, 128, {.cache = folder}};
  const auto seconds_of_call = [&] {
    const double begin = bench::seconds();
    steps();
    return bench::seconds() - begin;
  };
  const double first = seconds_of_call();
  return first - seconds_of_call();
}
int time_compilation(int rounds) {
  const std::string folder = std::filesystem::temp_directory_path() / "bench_xla_step.XXXXXX";
  std::vector<double> compiled, kept;
  for (int round = 0; round < rounds; ++round) {
    std::string name = folder;
    if (mkdtemp(name.data()) == nullptr) std::abort();
    compiled.push_back(first_call(name));
    kept.push_back(first_call(name));
    std::filesystem::remove_all(name);
  }
  std::printf("{\"seconds_to_compile\": %.4g, \"seconds_from_cache\": %.4g}\n", bench::distribution(compiled).median,
              bench::distribution(kept).median);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // A single device uses both cores.
  const bool is_one = argc > 2 && std::string_view(argv[2]) == "xla_one";
  dist::pjrt::set_process_options({.values = {{"cpu_device_count", std::int64_t{is_one ? 1 : 2}}}});
  if (argc > 1 && std::string_view(argv[1]) == "--compile")
    return time_compilation(argc > 2 ? std::max(std::atoi(argv[2]), 1) : 3);
  return bench::compare_training_steps(
      argc, argv, contenders, quotients,
      {.title = "CNN training step, RMSprop",
       .help = "Times the training step of the CNN compiled by XLA, for all contenders in turns or for one."});
}
