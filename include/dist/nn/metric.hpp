#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/nn/deferred_tally.hpp>
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

/// A tally of numbers that a device computes, such as an nn::DeferredTally: `tally()` waits for them, unless `is_done()`.
template <class D, class Tally>
concept DeferredTallyOf = std::move_constructible<D> && requires(const D deferred) {
  { deferred.is_done() } -> std::same_as<bool>;
  { deferred.tally() } -> std::same_as<Tally>;
};

/// A metric that measures in memory of a device: its call takes the replica's queue first, and does not wait for it.
template <class M, class Queue, class... Given>
concept MeasuresByQueue = requires(const M measure, const Queue queue, const Given&... given) {
  { measure(queue, given...) } -> DeferredTallyOf<typename M::Tally>;
};

/// A running mean over all batches and all replicas. Each replica adds to copies of its own (OnRead, Sum) without
/// communication; the result aggregates them (spec P15). Where a strategy keeps one copy, adding is a collective call. What
/// devices measure is added when it is there, or somebody asks for the result.
///
///     nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
template <class S, class M>
class Metric {
 public:
  using Measure = M;
  using Tally = typename M::Tally;

  /// The state is in the strategy's memory, on pages of each replica. Throws OutOfMemory.
  explicit Metric(S& strategy, M measure = {})
      : measure_(std::move(measure)),
        total_(strategy.template host_variable<decltype(Tally::total), OnRead, Sum>(Shape{}, 0,
                                                                                    std::string(name()) + "/total")),
        count_(strategy.template host_variable<decltype(Tally::count), OnRead, Sum>(Shape{}, 0,
                                                                                    std::string(name()) + "/count")),
        deferred_(strategy) {}

  [[nodiscard]] std::string_view name() const noexcept { return measure_.name; }

  /// Measures a batch of this replica: accuracy and losses take outputs and targets, MeanValue a value and its weight.
  /// A mean of losses that are scaled by the global batch is too small by the number of replicas (spec P17): give it
  /// unscaled ones, as MeanOf does.
  void update(const InReplica auto& replica, const auto&... given) {
    if constexpr (MeasuresByQueue<M, std::remove_cvref_t<decltype(replica.queue())>,
                                  std::remove_cvref_t<decltype(given)>...>)
      add(replica, measure_(replica.queue(), given...));
    else
      add(replica, measure_(given...));
  }
  /// Adds what has been measured already.
  void add(const InReplica auto& replica, Tally tally) {
    total_.assign_add(replica, tally.total);
    count_.assign_add(replica, tally.count);
  }
  /// Adds what a device measures, without waiting for it. Throws what a tally before threw, once it is there.
  void add(const InReplica auto& replica, DeferredTallyOf<Tally> auto deferred) {
    auto& of_replica = deferred_.of_replicas[replica.local_index()];
    of_replica.add(std::move(deferred));
    add(replica, of_replica.take(false));
  }

  /// Outside replica functions every replica measures the same batch, which counts as often as there are replicas; the
  /// mean is that of one (spec P16).
  void update(const InCrossReplica auto& context, const auto&... given) { add(context, measure_(given...)); }
  void add(const InCrossReplica auto& context, Tally tally) {
    const std::size_t local_replicas = context.strategy().num_local_replicas();
    for (std::size_t local = 0; local < local_replicas; ++local) add_to(context, local, tally);
  }

  /// The mean so far; 0 before the first example. Throws what a deferred tally throws.
  [[nodiscard]] double result(const InCrossReplica auto& context) const {
    add_deferred(context);
    return mean_of(total_.value(context), count_.value(context));
  }
  /// The same on every replica. A collective call.
  [[nodiscard]] double result(const InReplica auto& replica) const {
    if constexpr (is_deferred) {
      const Tally rest = deferred_.of_replicas[replica.local_index()].take(true);
      total_.component(replica)[0] += rest.total;
      count_.component(replica)[0] += rest.count;
    }
    const auto total = total_.synchronized_value(replica);
    return mean_of(total, count_.synchronized_value(replica));
  }

  /// Calls that forgot the context, for a sentence.
  template <bool has_context = false>
  double result() const {
    static_assert(has_context,
                  "a metric's result needs a context: result(strategy.scope()) outside replica functions, "
                  "result(replica) inside them");
    return 0;
  }

  /// The mean so far over the replicas of this process: no collective call, so that a process may look when it likes.
  [[nodiscard]] double result_here(const InCrossReplica auto& context) const {
    add_deferred(context);
    Tally here{};
    for (std::size_t copy = 0; copy < total_.copies(); ++copy) {
      here.total += total_.copy(context, copy)[0];
      here.count += count_.copy(context, copy)[0];
    }
    return mean_of(here.total, here.count);
  }

  /// What it has added up so far. See Trackable.
  void track(auto& visit) {
    if constexpr (is_deferred) add_deferred(deferred_.strategy->scope());
    visit("total", total_);
    visit("count", count_);
  }

  /// Resets the metric to nothing, on every replica (spec P18).
  void reset(const InCrossReplica auto& context) {
    if constexpr (is_deferred)
      for (auto& of_replica : deferred_.of_replicas) of_replica.clear();
    total_.assign(context, 0);
    count_.assign(context, 0);
  }

 private:
  template <class T>
  using Variable = decltype(std::declval<S&>().template host_variable<T, OnRead, Sum>(Shape{}, 0, std::string{}));

  static double mean_of(auto total, auto count) {
    return count == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(count);
  }

  static constexpr bool is_deferred = !S::Device::Place::host_accessible;
  struct NothingDeferred {
    explicit NothingDeferred(S&) {}
  };
  struct Deferred {
    explicit Deferred(S& of) : strategy(&of), of_replicas(of.num_local_replicas()) {}
    S* strategy;
    std::vector<detail::DeferredTallies<Tally>> of_replicas;
  };

  void add_to(const InCrossReplica auto& context, std::size_t local, Tally tally) const {
    total_.component(context, local)[0] += tally.total;
    count_.component(context, local)[0] += tally.count;
  }
  void add_deferred(const InCrossReplica auto& context) const {
    if constexpr (is_deferred)
      for (std::size_t local = 0; local < deferred_.of_replicas.size(); ++local)
        add_to(context, local, deferred_.of_replicas[local].take(true));
  }

  M measure_;
  Variable<decltype(Tally::total)> total_;
  Variable<decltype(Tally::count)> count_;
  // What is asked for is added first.
  [[no_unique_address]] mutable std::conditional_t<is_deferred, Deferred, NothingDeferred> deferred_;
};

template <Strategy S, class M>
Metric(S&, M) -> Metric<S, M>;

/// What is not made on a strategy, or measures nothing, for a sentence.
template <class S, class M>
  requires(!Strategy<S> || !MetricFunction<M>)
class Metric<S, M> {
  static_assert(dist::detail::holds<Strategy<S>>,
                "a metric is made on a strategy, which is its first argument, such as a dist::Default or a "
                "dist::Mirrored: nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}}");
  static_assert(dist::detail::holds<(!Strategy<S> || MetricFunction<M>)>,
                "a metric measures with an nn::MetricFunction, which names its Tally and has a name: give nn::Metric "
                "one such as nn::SparseCategoricalAccuracy{}");

 public:
  explicit Metric(auto&&...) {}
};
template <dist::detail::NoStrategy First, class... Rest>
Metric(First&&, Rest&&...) -> Metric<std::remove_reference_t<First>, void>;

}  // namespace dist::nn
