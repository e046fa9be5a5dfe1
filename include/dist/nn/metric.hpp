#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

/// What one batch adds to a metric: the metric's result is the sum of the totals over the sum of the counts.
/// Integer types keep counts exact.
template <Reducible T, Reducible C>
struct Tally {
  T total{};
  C count{};
};

/// What a metric measures: a copyable functor that looks at a batch and returns its Tally. `name` is how logs
/// call it.
template <class M>
concept MetricFunction = std::copyable<M> && requires(const M measure) {
  typename M::Tally;
  { measure.name } -> std::convertible_to<std::string_view>;
};

/// A running mean over all batches and all replicas. Each replica adds to copies of its own (OnRead, Sum)
/// without communication; the result aggregates them (spec P15).
///
///     nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
template <class S, MetricFunction M>
class Metric {
 public:
  using Measure = M;
  using Tally = typename M::Tally;

  /// The state is in the strategy's memory, on pages of each replica. Throws OutOfMemory.
  explicit Metric(S& strategy, M measure = {})
      : measure_(std::move(measure)),
        total_(strategy.template variable<decltype(Tally::total), OnRead, Sum>(Shape{}, 0,
                                                                               std::string(name()) + "/total")),
        count_(strategy.template variable<decltype(Tally::count), OnRead, Sum>(Shape{}, 0,
                                                                               std::string(name()) + "/count")) {}

  [[nodiscard]] std::string_view name() const noexcept { return measure_.name; }

  /// Measures a batch of this replica: accuracy and losses take outputs and targets, MeanValue a value and
  /// its weight.
  void update(const InReplica auto& replica, const auto&... given) { add(replica, measure_(given...)); }
  /// Adds what has been measured already.
  void add(const InReplica auto& replica, Tally tally) {
    total_.component(replica)[0] += tally.total;
    count_.component(replica)[0] += tally.count;
  }

  /// The mean so far; 0 before the first example.
  [[nodiscard]] double result(const InCrossReplica auto& context) const {
    return mean_of(total_.value(context), count_.value(context));
  }
  /// The same on every replica. A collective call.
  [[nodiscard]] double result(const InReplica auto& replica) const {
    const auto total = replica.all_reduce(sum, total_.value(replica));
    return mean_of(total, replica.all_reduce(sum, count_.value(replica)));
  }

  /// Starts again from nothing, on every replica (spec P18).
  void reset(const InCrossReplica auto& context) {
    total_.assign(context, 0);
    count_.assign(context, 0);
  }

 private:
  template <class T>
  using Variable = decltype(std::declval<S&>().template variable<T, OnRead, Sum>(Shape{}, 0, std::string{}));

  static double mean_of(auto total, auto count) {
    return count == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(count);
  }

  M measure_;
  Variable<decltype(Tally::total)> total_;
  Variable<decltype(Tally::count)> count_;
};

template <class S, class M>
Metric(S&, M) -> Metric<S, M>;

}  // namespace dist::nn
