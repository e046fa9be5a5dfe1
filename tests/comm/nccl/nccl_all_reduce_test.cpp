// NCCL reduces the GPU memory of replicas.
// replicas on separate GPUs: 1 2 3 4
#include <dist/comm/nccl/nccl_all_reduce.cuh>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

namespace {

using Strategy = dist::Mirrored<dist::NcclAllReduce>;
static_assert(std::same_as<Strategy::Device, dist::Cuda>);
static_assert(std::same_as<dist::Mirrored<dist::ThreadAllReduce>::Device, dist::Cpu>);

/// Whole numbers, with exact sums and means of up to four.
template <class T>
struct Number {
  T* to;
  std::size_t rank;
  DIST_HD void operator()(std::size_t i) const {
    to[i] = static_cast<T>(static_cast<float>(12 * (rank + 1) * (i % 5)));
  }
};
template <class T>
struct Descend {
  DIST_HD T operator()(std::size_t i, T weight, T slope) const {
    return static_cast<T>(static_cast<float>(weight) + static_cast<float>(i % 3) - static_cast<float>(slope));
  }
};

template <class T>
std::vector<T> read(const auto& replica, dist::Cuda::Span<T> values) {
  std::vector<T> read(values.size());
  replica.queue().copy(dist::Cuda::Span<const T>{values}, std::span<T>{read});
  replica.queue().wait();
  return read;
}

}  // namespace

TEST_CASE("the devices of the policy are GPUs by default") {
  Strategy strategy{conformance::replicas_of_environment()};
  CHECK(strategy.describe().find("Mirrored<NcclAllReduce, Cuda>: ") == 0);
}

// 1920 elements divide into equal cache lines for 1, 2, 3 and 4 replicas; 1003 and 5 do not.
TEST_CASE_TEMPLATE("updates by sums and means are correct for equal and unequal shards, whole and in halves", T, float,
                   dist::BFloat16) {
  const std::size_t replicas = conformance::replicas_of_environment();
  const std::size_t all_values = replicas * (replicas + 1) / 2;
  for (const std::size_t count : {1920U, 1003U, 5U}) {
    CAPTURE(count);
    Strategy strategy{replicas};
    auto gradient = strategy.template buffer<T>(dist::Shape{count});
    auto kept = strategy.template buffer<T>(dist::Shape{count});
    auto weights = strategy.template buffer<T>(dist::Shape{count});
    const auto wrong = strategy.run([&](auto& replica) {
      const auto mine = gradient.component(replica);
      const auto weight = weights.component(replica);
      replica.queue().fill(weight, static_cast<T>(0.0F));
      replica.for_each(count, Number<T>{mine.data(), replica.replica_id().index()});
      replica.reduce_and_apply(dist::mean, mine, weight, Descend<T>{});
      const std::vector<T> once = read<T>(replica, weight);
      replica.queue().fill(weight, static_cast<T>(0.0F));
      static_cast<void>(replica.reduce_scatter(dist::mean, mine, kept.component(replica)));
      replica.update_shards(kept.component(replica), weight, Descend<T>{});
      const std::vector<T> halves = read<T>(replica, weight);
      replica.all_reduce(dist::sum, mine);
      const std::vector<T> sums = read<T>(replica, mine);
      std::size_t mistakes = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto sum = static_cast<float>(12 * all_values * (i % 5));
        const auto expected = static_cast<T>(static_cast<float>(i % 3) - sum / static_cast<float>(replicas));
        mistakes += static_cast<float>(once[i]) != static_cast<float>(expected);
        mistakes += static_cast<float>(halves[i]) != static_cast<float>(expected);
        mistakes += static_cast<float>(sums[i]) != static_cast<float>(static_cast<T>(sum));
      }
      return mistakes;
    });
    for (const std::size_t mistakes : wrong) CHECK(mistakes == 0);
  }
}

TEST_CASE("GPU memory is gathered in rank order even if some replicas contribute nothing") {
  const std::size_t replicas = conformance::replicas_of_environment();
  Strategy strategy{replicas};
  std::vector<std::size_t> counts;
  std::vector<float> expected;
  for (std::size_t rank = 0; rank < replicas; ++rank) {
    counts.push_back(7 * rank);
    for (std::size_t i = 0; i < counts.back(); ++i) expected.push_back(static_cast<float>(12 * (rank + 1) * (i % 5)));
  }
  const std::size_t all_elements = expected.size();
  auto part = strategy.buffer<float>(dist::Shape{7 * replicas});
  auto all = strategy.buffer<float>(dist::Shape{all_elements});
  const auto gathered = strategy.run([&](auto& replica) {
    const std::size_t rank = replica.replica_id().index();
    const auto mine = part.component(replica).first(counts[rank]);
    replica.for_each(mine.size(), Number<float>{mine.data(), rank});
    replica.collectives().all_gather(dist::Cuda::Span<const float>{mine}, std::span<const std::size_t>{counts},
                                     all.component(replica));
    return read<float>(replica, all.component(replica));
  });
  for (const std::vector<float>& each : gathered) CHECK(each == expected);
}
