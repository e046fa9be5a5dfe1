// Fused updates through NCCL windows.
// replicas on separate GPUs: 1 2 3 4
#include <dist/comm/nccl/nccl_symmetric_all_reduce.cuh>

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>
#include <support/fake_cuda/machine.hpp>
#include <support/fake_nccl/machine.hpp>

namespace {

using Strategy = dist::Mirrored<dist::NcclSymmetricAllReduce>;
static_assert(std::same_as<Strategy::Device, dist::Cuda>);

/// Returns numbers whose sums depend on the order of additions.
DIST_HD float number(std::size_t rank, std::size_t i) {
  return 1.0F / static_cast<float>(3 * i + 7 * rank + 1) + (i % 3 == rank % 3 ? 1e6F : 0.0F);
}
template <class T>
struct Number {
  T* to;
  std::size_t rank;
  DIST_HD void operator()(std::size_t i) const { to[i] = static_cast<T>(number(rank, i)); }
};
template <class T>
struct Descend {
  DIST_HD T operator()(std::size_t i, T weight, T slope) const {
    return static_cast<T>(static_cast<float>(weight) + static_cast<float>(i % 3) - static_cast<float>(slope));
  }
};

/// Returns a replica's weights after one update in rank order, from zero.
template <class T, class Op>
T expected(std::size_t replicas, std::size_t i) {
  auto sum = static_cast<dist::Accumulator<T>>(static_cast<T>(number(0, i)));
  for (std::size_t rank = 1; rank < replicas; ++rank)
    sum = Op{}(sum, static_cast<dist::Accumulator<T>>(static_cast<T>(number(rank, i))));
  return Descend<T>{}(i, T(0.0F), static_cast<T>(Op::finish(sum, replicas)));
}

template <class T>
std::vector<T> read(const auto& replica, dist::Cuda::Span<T> values) {
  std::vector<T> read(values.size());
  replica.queue().copy(dist::Cuda::Span<const T>{values}, std::span<T>{read});
  replica.queue().wait();
  return read;
}

/// Updates zeros once, by gradients and weights at `of_gradient(replica)` and `of_weights(replica)`. Returns how many
/// weights of all replicas differ from sums in rank order.
template <class T, class Op>
std::size_t mistakes_of_update(Strategy& strategy, Op op, auto&& of_gradient, auto&& of_weights) {
  const auto wrong = strategy.run([&](auto& replica) {
    const dist::Cuda::Span<T> gradient = of_gradient(replica), weights = of_weights(replica);
    replica.queue().fill(weights, T(0.0F));
    replica.for_each(gradient.size(), Number<T>{gradient.data(), replica.replica_id().index()});
    replica.reduce_and_apply(op, gradient, weights, Descend<T>{});
    const std::vector<T> after = read<T>(replica, weights);
    std::size_t mistakes = 0;
    for (std::size_t i = 0; i < after.size(); ++i)
      mistakes +=
          static_cast<float>(after[i]) != static_cast<float>(expected<T, Op>(replica.num_replicas_in_sync(), i));
    return mistakes;
  });
  std::size_t mistakes = 0;
  for (const std::size_t each : wrong) mistakes += each;
  return mistakes;
}

/// Returns the number of NCCL reductions since the restart.
int reductions() { return fake_nccl::calls("ncclReduceScatter") + fake_nccl::calls("ncclReduce"); }

}  // namespace

TEST_CASE("the devices of the policy are GPUs by default") {
  Strategy strategy{conformance::replicas_of_environment()};
  CHECK(strategy.describe().find("Mirrored<NcclSymmetricAllReduce, Cuda>: ") == 0);
}

// 1920 elements divide into equal cache lines for 1, 2, 3 and 4 replicas; 1003 and 5 do not.
TEST_CASE_TEMPLATE("a fused update is bit-identical to a sum in rank order and calls no NCCL reduction", T, float,
                   double, dist::BFloat16) {
  for (const std::size_t count : {1920U, 1003U, 5U, 0U}) {
    CAPTURE(count);
    fake_nccl::restart();
    Strategy strategy{conformance::replicas_of_environment()};
    auto gradient = strategy.template buffer<T>(dist::Shape{count});
    auto weights = strategy.template variable<T>(dist::Shape{count});
    const auto of_gradient = [&](auto& replica) { return gradient.component(replica); };
    const auto of_weights = [&](auto& replica) { return weights.component(replica); };
    CHECK(mistakes_of_update<T>(strategy, dist::sum, of_gradient, of_weights) == 0);
    CHECK(mistakes_of_update<T>(strategy, dist::mean, of_gradient, of_weights) == 0);
    CHECK(mistakes_of_update<T>(strategy, dist::max, of_gradient, of_weights) == 0);
    CHECK(reductions() == 0);
    CHECK(fake_nccl::live_windows() == (count == 0 ? 0 : 2 * strategy.num_replicas_in_sync()));
  }
}

TEST_CASE("operands may be different parts of a buffer on each replica, and gradients may be updated in place") {
  constexpr std::size_t count = 100;
  fake_nccl::restart();
  Strategy strategy{conformance::replicas_of_environment()};
  auto memory = strategy.buffer<float>(dist::Shape{8 * count});
  const auto part = [&](auto& replica, std::size_t from) { return memory.component(replica).subspan(from, count); };
  CHECK(mistakes_of_update<float>(
            strategy, dist::sum, [&](auto& replica) { return part(replica, 4 * replica.replica_id().index()); },
            [&](auto& replica) { return part(replica, 401 + replica.replica_id().index()); }) == 0);
  CHECK(reductions() == 0);
  CHECK(fake_nccl::live_windows() == strategy.num_replicas_in_sync());
}

TEST_CASE("windows are created once and end with their memory and before the ranks, which memory may outlive") {
  const std::size_t replicas = conformance::replicas_of_environment();
  fake_cuda::restart(fake_cuda::from_environment());
  fake_nccl::restart({.polls = 1});
  constexpr std::size_t count = 100;
  {
    auto strategy = std::make_unique<Strategy>(replicas);
    const auto weights =
        std::make_unique<dist::ReplicaBuffer<float, dist::Cuda>>(strategy->buffer<float>(dist::Shape{count}));
    const auto of_weights = [&](auto& replica) { return weights->component(replica); };
    for (const int round : {1, 2, 3}) {
      CAPTURE(round);
      const auto gradient = strategy->buffer<float>(dist::Shape{count});
      const auto of_gradient = [&](auto& replica) { return gradient.component(replica); };
      CHECK(mistakes_of_update<float>(*strategy, dist::sum, of_gradient, of_weights) == 0);
      CHECK(mistakes_of_update<float>(*strategy, dist::mean, of_gradient, of_weights) == 0);
      CHECK(fake_nccl::live_windows() == 2 * replicas);
    }
    CHECK(fake_nccl::live_windows() == replicas);
    CHECK(fake_nccl::calls("ncclCommWindowRegister") == static_cast<int>(4 * replicas));
    strategy.reset();
    CHECK(fake_nccl::live_windows() == 0);
    CHECK(fake_nccl::live_communicators() == 0);
  }
  CHECK(fake_nccl::calls("ncclCommAbort") == 0);
  CHECK(fake_cuda::live() == fake_cuda::Live{});
}

TEST_CASE("NCCL reduces on all GPUs and is not queried again if GPUs do not reach each other's memory") {
  constexpr std::size_t count = 1003;
  for (const fake_nccl::Options& options :
       {fake_nccl::Options{.windows = false}, fake_nccl::Options{.polls = 1, .lsa_size = 9}}) {
    fake_nccl::restart(options);
    Strategy strategy{conformance::replicas_of_environment()};
    auto gradient = strategy.buffer<float>(dist::Shape{count});
    auto weights = strategy.buffer<float>(dist::Shape{count});
    for (const int round : {1, 2}) {
      CAPTURE(round);
      const auto means = strategy.run([&](auto& replica) {
        replica.queue().fill(gradient.component(replica), static_cast<float>(replica.replica_id().index() + 1));
        replica.queue().fill(weights.component(replica), 0.0F);
        replica.reduce_and_apply(dist::mean, gradient.component(replica), weights.component(replica), Descend<float>{});
        return read<float>(replica, weights.component(replica))[3];
      });
      const auto replicas = static_cast<float>(strategy.num_replicas_in_sync());
      for (const float each : means) CHECK(each == 0.0F - (replicas + 1) / 2);
    }
    CHECK(reductions() > 0);
    CHECK(fake_nccl::live_windows() == 0);
    CHECK(fake_nccl::calls("ncclDevCommCreate") == static_cast<int>(strategy.num_replicas_in_sync()));
    CHECK(fake_nccl::calls("ncclCommAbort") == 0);
  }
  fake_nccl::restart();
}

TEST_CASE("operands outside the strategy's memory are reduced by NCCL on all replicas") {
  constexpr std::size_t count = 100;
  fake_nccl::restart();
  Strategy strategy{conformance::replicas_of_environment()};
  auto weights = strategy.buffer<float>(dist::Shape{count});
  auto gradients = strategy.buffer<float>(dist::Shape{count});
  const auto of_weights = [&](auto& replica) { return weights.component(replica); };
  const dist::cuda::DeviceBuffer own{0, count * sizeof(float)};
  static_cast<void>(mistakes_of_update<float>(
      strategy, dist::sum,
      [&](auto& replica) {
        return replica.local_index() == 0 ? dist::Cuda::Span<float>{reinterpret_cast<float*>(own.data()), count}
                                          : gradients.component(replica);
      },
      of_weights));
  CHECK(reductions() > 0);
  CHECK(fake_nccl::live_windows() == 0);
  const int before = reductions();
  CHECK(mistakes_of_update<float>(
            strategy, dist::sum, [&](auto& replica) { return gradients.component(replica); }, of_weights) == 0);
  CHECK(reductions() == before);
}
