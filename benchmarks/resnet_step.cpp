// The training step of example 19's residual network on data in memory: two replicas compared with one.
//
//   bench_resnet_step [ROUNDS [JSON]]        all contenders in turns, ratios
//   bench_resnet_step --only NAME [SECONDS]  one contender alone, for profilers and comparisons
#include <cstddef>
#include <memory>

#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>

#include "support/named_contenders.hpp"
#include "support/resnet.hpp"
#include "support/training.hpp"
#include "support/training_steps.hpp"

namespace {

namespace nn = dist::nn;
constexpr std::size_t per_replica = 32;

template <class Strategy>
struct Run {
  template <class... Replicas>
  explicit Run(Replicas... replicas)
      : strategy(replicas...), images(per_replica * strategy.num_replicas_in_sync(), {32, 32, 3}) {}

  Strategy strategy;
  bench::Images images;
  bench::NetworkTraining<bench::ResNet, nn::Adam, nn::OneDnn, Strategy> training{strategy};
};

/// Runs one global step. Returns the number of images.
template <class Strategy, class... Replicas>
bench::Work make(Replicas... replicas) {
  const auto run = std::make_shared<Run<Strategy>>(replicas...);
  return [run] {
    run->training(run->images);
    return static_cast<double>(run->images.x.rows());
  };
}

const bench::NamedContender contenders[] = {
    {"one", "OneDevice<Cpu>, 1 x 32", [] { return make<dist::OneDevice<dist::Cpu>>(); }},
    {"mirrored", "Mirrored<ThreadAllReduce>, 2 x 32",
     [] { return make<dist::Mirrored<dist::ThreadAllReduce>>(std::size_t{2}); }},
    {"central", "CentralStorage<Cpu>, 2 x 32", [] { return make<dist::CentralStorage<dist::Cpu>>(std::size_t{2}); }},
};

constexpr bench::Quotient quotients[] = {
    {"2 replicas over 1 replica (1.8)", "mirrored", "one"},
    {"central storage, 2 replicas over 1 replica", "central", "one"},
};

}  // namespace

int main(int argc, char** argv) {
  return bench::compare_training_steps(
      argc, argv, contenders, quotients,
      {.title = "ResNet training step, Adam, (goal)",
       .help = "Times the training step of a residual network, for all contenders in turns or "
               "for one.",
       .seconds = 0.4});
}
