#include <dist/nn/metric.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/auc.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/strategy/central_storage.hpp>
#include <support/saved.hpp>

#include "support/allocations.hpp"

namespace nn = dist::nn;

namespace {

/// Counts even numbers.
struct Evens {
  using Tally = nn::Tally<std::int64_t, std::int64_t>;
  std::string_view name = "evens";
  Tally operator()(std::int64_t number) const { return {number % 2 == 0 ? 1 : 0, 1}; }
};
struct NoTally {
  std::string_view name = "none";
};

static_assert(nn::MetricFunction<Evens>);
static_assert(!nn::MetricFunction<NoTally>);

template <class S>
void compare(std::unique_ptr<S> owner) {
  S& strategy = *owner;
  CAPTURE(strategy.describe());
  nn::Metric evens{strategy, Evens{}};
  static_assert(std::is_same_v<typename decltype(evens)::Measure, Evens>);
  CHECK(evens.name() == "evens");
  CHECK(evens.result(strategy.scope()) == 0.0);
  strategy.run([&](auto& replica) { CHECK(evens.result(replica) == 0.0); });
  const std::size_t replicas = strategy.num_replicas_in_sync();
  for (int step = 0; step < 3; ++step)
    strategy.run([&](auto& replica) {
      const auto id = static_cast<std::int64_t>(replica.replica_id().index());
      for (std::int64_t i = 0; i < 3; ++i) evens.update(replica, id * i);  // the same number of calls everywhere
    });
  double even = 0;
  for (std::size_t replica = 0; replica < replicas; ++replica)
    for (std::size_t i = 0; i < 3; ++i) even += replica * i % 2 == 0 ? 1 : 0;
  const double expected = even / (3 * static_cast<double>(replicas));
  CHECK(evens.result(strategy.scope()) == expected);
  CHECK(evens.result_here(strategy.scope()) == expected);
  strategy.run([&](auto& replica) { CHECK(evens.result(replica) == expected); });

  evens.reset(strategy.scope());  // spec P18
  CHECK(evens.result(strategy.scope()) == 0.0);
  strategy.run([&](auto& replica) { evens.add(replica, {1, 4}); });
  CHECK(evens.result(strategy.scope()) == 0.25);

  // Outside replica functions, a batch counts once for every replica (spec P16): R times 1 of 4, and R times 2 of 2.
  evens.update(strategy.scope(), 6);
  evens.update(strategy.scope(), 8);
  CHECK(evens.result(strategy.scope()) == 0.5);
  evens.reset(strategy.scope());
  evens.update(strategy.scope(), 6);
  evens.update(strategy.scope(), 7);
  CHECK(evens.result(strategy.scope()) == 0.5);  // the same ratio as for one replica
}

}  // namespace

TEST_CASE("replicas add to their own sums, and the result aggregates them (spec P15, P16, P18)") {
  compare(std::make_unique<dist::Default>());
  compare(std::make_unique<dist::OneDevice<dist::Cpu>>());
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U}) {
    compare(std::make_unique<dist::Mirrored<dist::ThreadAllReduce>>(replicas));
    compare(std::make_unique<dist::CentralStorage<dist::Cpu>>(replicas));
  }
}

TEST_CASE("without communication, replicas may update a metric a different number of times (spec P15)") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  nn::Metric evens{strategy, Evens{}};
  strategy.run([&](auto& replica) {
    for (std::int64_t i = 0; i <= static_cast<std::int64_t>(replica.replica_id().index()); ++i)
      evens.update(replica, i);
  });
  CHECK(evens.result(strategy.scope()) == 4.0 / 6);  // 0; 0, 1; 0, 1, 2
}

TEST_CASE("a mean of losses that are scaled by the global batch is wrong by the number of replicas (spec P17)") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Metric scaled{strategy, nn::MeanValue{}};
  nn::Metric unscaled{strategy, nn::MeanValue{}};
  strategy.run([&](auto& replica) {
    // Two examples per replica, losses 2 and 4, and 3 and 5: a global batch of 4 with mean 3.5.
    const double total = replica.replica_id().index() == 0 ? 2.0 + 4.0 : 3.0 + 5.0;
    scaled.update(replica, total / 4);
    unscaled.update(replica, total / 2, 2.0);
  });
  CHECK(unscaled.result(strategy.scope()) == 3.5);
  CHECK(scaled.result(strategy.scope()) == 3.5 / 2);
}

TEST_CASE("the states of different replicas are on different pages") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  auto total = strategy.variable<std::int64_t, dist::OnRead, dist::Sum>(dist::Shape{}, 0, "total");
  const auto scope = strategy.scope();
  const auto* first = total.component(scope, 0).data();
  const auto* second = total.component(scope, 1).data();
  CHECK((first > second ? first - second : second - first) >= 4096 / 8);
}

TEST_CASE("the same code runs under Default") {
  dist::Default strategy;
  nn::Metric evens{strategy, Evens{}};
  strategy.run([&](auto& replica) { evens.update(replica, 2); });
  CHECK(evens.result(strategy.scope()) == 1.0);
}

TEST_CASE("metrics and losses do not allocate in a step (spec P15, P17)") {
  const auto check = [](auto& strategy) {
    CAPTURE(strategy.describe());
    nn::Metric average{strategy, nn::MeanValue{}};
    nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
    nn::Metric error{strategy, nn::MeanOf{nn::MeanSquaredError{}}};
    nn::Metric area{strategy, nn::Auc{}};
    const dist::Shape shape{16, 10};
    const dist::Tensor<float> targets{shape};
    const dist::Tensor<float> weights{dist::Shape{16}};
    dist::Tensor<std::int32_t> labels{dist::Shape{16}};
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
    struct Outputs {
      dist::TensorView<const float> values;
      dist::TensorView<float> gradient;
    };
    std::vector<dist::Tensor<float>> memory(2 * strategy.num_replicas_in_sync(), dist::Tensor<float>{shape});
    const auto step = [&](auto& replica) {
      const std::size_t rank = replica.local_index();
      const Outputs outputs{memory[2 * rank].view(), memory[2 * rank + 1].view()};
      const auto loss = nn::sparse_categorical_crossentropy(replica, outputs, labels, 64);
      const auto difference = nn::compute_loss(nn::MeanSquaredError{}, replica, outputs, targets, 64);
      average.update(replica, loss.value() + difference.value());
      accuracy.update(replica, outputs, labels, weights);
      error.update(replica, outputs, targets);
      area.update(replica, outputs, targets, weights);
      return average.result(replica) + accuracy.result(replica) + error.result(replica);
    };
    static_cast<void>(strategy.run(step));
    const std::size_t before = allocations;
    for (int i = 0; i < 3; ++i) static_cast<void>(strategy.run(step));
    CHECK(allocations == before);
  };
  dist::Default plain;
  check(plain);
  dist::Mirrored<dist::ThreadAllReduce> mirrored{3};
  check(mirrored);
  dist::CentralStorage<dist::Cpu> central{3};
  check(central);
}

TEST_CASE("a metric's sums are tracked, and restored with another number of replicas") {
  dist::Mirrored<dist::ThreadAllReduce> three{3};
  nn::Metric average{three, nn::MeanValue{}};
  three.run([&](auto& replica) { average.update(replica, static_cast<double>(replica.local_index())); });
  const support::Saved saved{three, average};
  CHECK(saved.keys() == std::vector<std::string>{"count", "total"});
  dist::CentralStorage<dist::Cpu> two{2};
  nn::Metric restored{two, nn::MeanValue{}};
  saved.restore(two, restored);
  CHECK(restored.result(two.scope()) == 1.0);
  two.run([&](auto& replica) { restored.update(replica, 11.0); });
  CHECK(restored.result(two.scope()) == 5.0);
}

namespace {

/// Counts rows by the sign of their first output.
struct Yes {
  std::string_view name = "yes";
  int cells = 2;
  void check() const {
    if (cells < 1) throw dist::InvalidArgument("No cells", "there are none", "Give one");
  }
  [[nodiscard]] dist::Shape shape() const { return {static_cast<std::size_t>(cells)}; }
  template <class T, class Target, class Add>
  void for_each_bin(nn::Row<const T> outputs, nn::Row<const Target>, const Add& add) const {
    add(outputs[0] > T{0} ? std::size_t{1} : std::size_t{0});
  }
  [[nodiscard]] static double result(dist::TensorView<const double> counts) { return 10 * counts[0] + counts[1]; }
};

static_assert(nn::MetricFunction<Yes>);

template <class S>
void check_counts(std::unique_ptr<S> owner) {
  S& strategy = *owner;
  CAPTURE(strategy.describe());
  nn::Metric yes{strategy, Yes{}};
  CHECK(yes.name() == "yes");
  const auto replicas = static_cast<double>(strategy.num_replicas_in_sync());
  dist::Tensor<float> outputs{dist::Shape{3, 1}};
  outputs[1] = 1;
  for (int step = 0; step < 2; ++step)
    strategy.run([&](auto& replica) {
      yes.update(replica, outputs, outputs);
      CHECK(yes.result(replica) == (step + 1) * 21 * replicas);
    });
  CHECK(yes.result(strategy.scope()) == 42 * replicas);
  CHECK(yes.result_here(strategy.scope()) == 42 * replicas);
  CHECK(yes.counts(strategy.scope())[0] == 4 * replicas);
  yes.update(strategy.scope(), outputs, outputs);  // every replica counts (spec P16)
  CHECK(yes.counts(strategy.scope())[1] == 3 * replicas);
  yes.reset(strategy.scope());
  CHECK(yes.result(strategy.scope()) == 0);
}

}  // namespace

TEST_CASE(
    "a metric of counts adds up the replicas' counts, and computes its result from the sums (spec P15, P16, P18)") {
  check_counts(std::make_unique<dist::Default>());
  check_counts(std::make_unique<dist::OneDevice<dist::Cpu>>());
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U}) {
    check_counts(std::make_unique<dist::Mirrored<dist::ThreadAllReduce>>(replicas));
    check_counts(std::make_unique<dist::CentralStorage<dist::Cpu>>(replicas));
  }
  dist::Default strategy;
  CHECK_THROWS_AS((nn::Metric{strategy, Yes{.cells = 0}}), dist::InvalidArgument);
}
