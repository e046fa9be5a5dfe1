// An embedding table that is too large for a worker: ten million rows on two parameter servers. A step looks up the
// rows of its examples, and sends gradients for these rows only. Servers and workers are threads of this process, or
// with "ps" tasks in TF_CONFIG processes that communicate by gRPC.
//
// Task: predict from three words whether an example is liked. Words are numbers, and like in natural language, few
// are frequent.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <dist/cluster.hpp>
#include <dist/coordinator/local_job.hpp>
#include <dist/nn/optimizers/adagrad.hpp>
#include <dist/nn/slices_optimizer.hpp>
#include <dist/parameter_server.hpp>
#include <dist/rpc/grpc/transport.hpp>

#include "check.hpp"
#include "quick.hpp"

namespace {

constexpr std::size_t width = 8;
constexpr std::size_t words = 3;  // per example
constexpr std::size_t batch = 256;
std::size_t rows() { return quick() ? 200'000 : 10'000'000; }

/// The function that the workers learn: true if the word counts in favour.
bool likes(std::int64_t word) { return (static_cast<std::uint64_t>(word) * 0x9e3779b97f4a7c15U) >> 63 != 0; }

struct Batch {
  dist::Tensor<std::int64_t> ids{dist::Shape{batch, words}};
  std::array<bool, batch> liked{};
};

/// An endless stream of random examples for one worker.
struct Examples {
  std::size_t vocabulary;
  dist::RandomStream random;
  std::uint64_t next = 0;

  Batch draw() {
    Batch drawn;
    for (std::size_t example = 0; example < batch; ++example) {
      std::size_t count = 0;
      for (std::size_t word = 0; word < words; ++word) {
        // The probability of the first k of n words is (k / n)^(1/12).
        const double share = std::pow(static_cast<double>(random.uniform(next++)), 12.0);
        const auto id = static_cast<std::int64_t>(share * static_cast<double>(vocabulary));
        drawn.ids[example * words + word] = std::min(id, static_cast<std::int64_t>(vocabulary) - 1);
        count += likes(drawn.ids[example * words + word]) ? 1U : 0U;
      }
      drawn.liked[example] = 2 * count > words;
    }
    return drawn;
  }
};

/// One step on any idle worker: logistic regression on the sum of the rows. Returns the number of correct examples.
struct Step {
  template <class Table, class Optimizer>
  std::size_t operator()(auto& replica, Table& table, Optimizer& optimizer, Examples& examples) const {
    const Batch drawn = examples.draw();
    // [lookup]
    // Each row is sent once, even if it occurs several times.
    const auto found = dist::embedding_lookup(replica, table, drawn.ids);
    // [/lookup]
    dist::Tensor<float> gradient{found.values().shape()};
    std::size_t right = 0;
    for (std::size_t example = 0; example < batch; ++example) {
      const std::size_t first = example * words * width;
      float sum = 0;
      for (std::size_t i = 0; i < words * width; ++i) sum += found.values().data()[first + i];
      const float error = 1 / (1 + std::exp(-sum)) - (drawn.liked[example] ? 1.0F : 0.0F);
      for (std::size_t i = 0; i < words * width; ++i) gradient[first + i] = error;
      right += (sum > 0) == drawn.liked[example] ? 1U : 0U;
    }
    // [gradient]
    optimizer.apply_slices(replica, found.gradient(gradient));  // sent when the step ends
    // [/gradient]
    return right;
  }
};

template <class T, class Resolver>
void train(const Resolver& resolver) {
  // [table]
  dist::ParameterServer<T> strategy{resolver, {.partitioner = dist::FixedShards{2}}};
  dist::ClusterCoordinator coordinator{strategy};
  std::printf("%s\n", strategy.describe().c_str());

  auto table = strategy.template variable<float>({rows(), width}, 0.0F, "words");
  const dist::nn::SlicesOptimizer optimizer{strategy, table, dist::nn::Adagrad{.learning_rate = 0.1F}};
  // [/table]
  const auto examples = coordinator.create_per_worker_resource([](const dist::InputContext& worker) {
    return Examples{rows(), dist::RandomStream{/*seed=*/2026 + worker.input_pipeline_id()}};
  });
  double accuracy = 0;
  const int rounds = quick() ? 4 : 10;
  for (int round = 1; round <= rounds; ++round) {
    std::array<dist::RemoteValue<std::size_t>, 200> results;
    for (auto& result : results) result = coordinator.schedule(Step{}, table, optimizer, examples);
    coordinator.join();
    std::size_t right = 0;
    for (auto& result : results) right += result.fetch();
    accuracy = static_cast<double>(right) / (batch * results.size());
    std::printf("round %2d: accuracy %.4f\n", round, accuracy);
  }
  std::printf("%zu rows of %zu on %zu servers, %.4f are classified correctly\n", rows(), width, table.shards().size(),
              accuracy);
  check(accuracy > 0.8, "the frequent words are learnt");
}

}  // namespace

int main() try {
  if (std::getenv("TF_CONFIG") != nullptr) {
    const dist::TfConfigResolver resolver;
    if (dist::serve<dist::Grpc>(resolver)) return 0;  // in servers and workers, after the coordinator has finished
    train<dist::Grpc>(resolver);
  } else {
    const dist::LocalJob job{/*parameter_servers=*/2, /*workers=*/2};
    train<dist::Local>(job.resolver());
  }
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
