#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/context/worker_copies.hpp>
#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/gradient_accumulation.hpp>
#include <dist/nn/metrics/cell_counts.hpp>
#include <dist/nn/metrics/row_metric.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist::nn {

/// One batch's contribution to a metric, whose result is the sum of totals over the sum of counts. Integers keep counts
/// exact.
template <Reducible T, Reducible C>
struct Tally {
  T total{};  ///< sum of the measured values
  C count{};  ///< sum of the weights
};

/// A metric that adds batches up to a Tally.
template <class M>
concept AddsTallies = requires {
  typename M::Tally;
};
/// The measure of a metric: a copyable functor that returns the Tally of a batch or a row (MeasuresRows), or counts
/// into cells (CountingMetric). `name` is for logs. Optional: `static constexpr bool more_is_better`, true if a greater
/// result is better, for callbacks.
template <class M>
concept MetricFunction = std::copyable<M> &&(AddsTallies<M> || CountingMetric<M>)&&requires(const M measure) {
  { measure.name } -> std::convertible_to<std::string_view>;
};

/// A tally that a device computes, such as an nn::DeferredTally. `tally()` waits for it unless `is_done()`.
template <class D, class Tally>
concept DeferredTallyOf = std::move_constructible<D> && requires(const D deferred) {
  { deferred.is_done() } -> std::same_as<bool>;
  { deferred.tally() } -> std::same_as<Tally>;
};

/// A metric for device memory: its call operator takes the replica's queue first, and does not wait for it.
template <class M, class Queue, class... Given>
concept MeasuresByQueue = requires(const M measure, const Queue queue, const Given&... given) {
  { measure(queue, given...) } -> DeferredTallyOf<typename M::Tally>;
};

namespace detail {

/// Rejects `result(replica)` for strategies whose replicas cannot read all sums.
template <class S>
constexpr void require_sums_of_all() {
  static_assert(!RemoteStore<typename S::Store>,
                "a step on a worker cannot access the sums of the other workers: read the result on the coordinator "
                "with result(strategy.scope())");
}

/// The sums of a metric's tallies: each replica adds to its own copies (OnRead, Sum). Metrics with the same type of
/// tally share the class, to save code.
template <class S, class Tally>
class TallySums {
 public:
  /// Throws OutOfMemory.
  [[gnu::noinline]] TallySums(S& strategy, std::string_view metric)
      : total_(
            strategy.template host_variable<decltype(Tally::total), OnRead, Sum>(Shape{}, 0, concat(metric, "/total"))),
        count_(strategy.template host_variable<decltype(Tally::count), OnRead, Sum>(Shape{}, 0,
                                                                                    concat(metric, "/count"))) {}

  /// Adds a tally on a replica; traced numbers in a traced step.
  void add(const auto& replica, const auto& tally) {
    total_.assign_add(replica, tally.total);
    count_.assign_add(replica, tally.count);
  }
  [[gnu::noinline]] void add_to(const InCrossReplica auto& context, std::size_t local, const Tally& tally) {
    if constexpr (RemoteStore<typename S::Store>) {
      S::Store::write(context, total_, {0, 1}, dist::detail::Uniform<decltype(Tally::total)>{tally.total}, sum);
      S::Store::write(context, count_, {0, 1}, dist::detail::Uniform<decltype(Tally::count)>{tally.count}, sum);
    } else {
      total_.component(context, local)[0] += tally.total;
      count_.component(context, local)[0] += tally.count;
    }
  }

  [[nodiscard, gnu::noinline]] double mean(const InCrossReplica auto& context) const {
    return mean_of(total_.value(context), count_.value(context));
  }
  [[nodiscard]] double mean(const InReplica auto& replica) const {
    const auto total = total_.synchronized_value(replica);
    return mean_of(total, count_.synchronized_value(replica));
  }
  /// Returns the mean over the replicas of this process.
  [[nodiscard, gnu::noinline]] double mean_here(const InCrossReplica auto& context) const {
    Tally here{};
    for (std::size_t copy = 0; copy < total_.copies(); ++copy) {
      here.total += total_.copy(context, copy)[0];
      here.count += count_.copy(context, copy)[0];
    }
    return mean_of(here.total, here.count);
  }

  void track(auto& visit) {
    visit("total", total_);
    visit("count", count_);
  }
  [[gnu::noinline]] void reset(const InCrossReplica auto& context) {
    total_.assign(context, 0);
    count_.assign(context, 0);
  }

 private:
  template <class T>
  using Variable = decltype(std::declval<S&>().template host_variable<T, OnRead, Sum>(Shape{}, 0, std::string{}));

  static double mean_of(auto total, auto count) {
    return count == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(count);
  }

  Variable<decltype(Tally::total)> total_;
  Variable<decltype(Tally::count)> count_;
};

/// Reports a call of `result` without a context.
struct NeedsContext {
  template <bool has_context = false>
  double result() const {
    static_assert(has_context,
                  "a metric's result needs a context: result(strategy.scope()) outside replica functions, "
                  "result(replica) inside them");
    return 0;
  }
};

}  // namespace detail

/// Selects nn::Metric's functions for traced steps, in nn/hlo/traced_metric.hpp, which only strategies that compile
/// steps include.
struct MetricInTrace {};

/// A running mean over all batches and replicas. Each replica adds to its own copies (OnRead, Sum) without
/// communication; the result aggregates them (spec P15). If a strategy keeps one copy, adding is a collective call.
/// Devices' tallies are added when they are complete, or when the result is read.
///
///     nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
template <class S, class M>
class Metric : detail::NeedsContext {
 public:
  /// The type of the measure.
  using Measure = M;
  /// The contribution of a batch.
  using Tally = typename M::Tally;

  /// The state is on separate pages for each replica. Throws OutOfMemory.
  explicit Metric(S& strategy, M measure = {})
      : variables_made_(strategy), measure_(std::move(measure)), sums_(strategy, name()), deferred_(strategy) {}

  [[nodiscard]] std::string_view name() const noexcept { return measure_.name; }
  // See HasWorkerCopies.
  [[nodiscard]] const VariablesMade& variables_made() const noexcept { return variables_made_; }
  [[nodiscard]] std::tuple<const M&> arguments() const noexcept { return {measure_}; }

  /// Measures this replica's batch. Accuracies take outputs, targets and optionally one weight per row; losses outputs
  /// and targets; MeanValue a value and its weight.
  ///
  /// A mean of losses over the global batch size is too small by a factor of the number of replicas (spec P17): use
  /// unscaled losses, as MeanOf does.
  void update(const InReplica auto& replica, const auto&... given) {
    if constexpr (!require_values_of_host<std::remove_cvref_t<decltype(given)>...>())
      return;
    else if constexpr (MeasuresRows<M>)
      add(replica, detail::measure_rows(replica.queue(), measure_, given...));
    else if constexpr (MeasuresByQueue<M, std::remove_cvref_t<decltype(replica.queue())>,
                                       std::remove_cvref_t<decltype(given)>...>)
      add(replica, measure_(replica.queue(), given...));
    else
      add(replica, measure_(given...));
  }
  /// Measures a batch in a traced step.
  void update(const InTrace auto& replica, const auto&... given) {
    sums_.add(replica, traced_tally(MetricInTrace{}, measure_, replica, given...));
  }
  /// Adds a tally.
  void add(const InReplica auto& replica, Tally tally) { sums_.add(replica, tally); }
  /// Adds a device's tally without waiting for it. Throws the error of an earlier, completed one.
  void add(const InReplica auto& replica, DeferredTallyOf<Tally> auto deferred) {
    auto& of_replica = deferred_.of_replicas[replica.local_index()];
    of_replica.add(std::move(deferred));
    add(replica, of_replica.take(false));
  }

  /// Measures a batch outside replica functions, once for every replica, which does not change the mean (spec P16).
  void update(const InCrossReplica auto& context, const auto&... given) {
    if constexpr (!detail::require_values_in<HostMemory, std::remove_cvref_t<decltype(given)>...>())
      return;
    else if constexpr (MeasuresRows<M>)
      add(context, detail::measure_rows(Cpu::Queue{}, measure_, given...));
    else
      add(context, measure_(given...));
  }
  /// Adds a tally outside replica functions, once for every replica.
  void add(const InCrossReplica auto& context, Tally tally) {
    const std::size_t local_replicas = context.strategy().num_local_replicas();
    for (std::size_t local = 0; local < local_replicas; ++local) sums_.add_to(context, local, tally);
  }

  /// Returns the current mean; 0 before the first example. Throws the errors of deferred tallies.
  [[nodiscard]] double result(const InCrossReplica auto& context) const {
    add_deferred(context);
    return sums_.mean(context);
  }
  /// Returns the current mean. A collective call of the replicas.
  [[nodiscard]] double result(const InReplica auto& replica) const {
    detail::require_sums_of_all<S>();
    if constexpr (is_deferred) sums_.add(replica, deferred_.of_replicas[replica.local_index()].take(true));
    return sums_.mean(replica);
  }
  using detail::NeedsContext::result;

  /// Returns the current mean of this process's replicas. Not a collective call.
  [[nodiscard]] double result_here(const InCrossReplica auto& context) const {
    add_deferred(context);
    return sums_.mean_here(context);
  }

  /// Tracks the sums. See Trackable.
  void track(auto& visit) {
    if constexpr (is_deferred) add_deferred(deferred_.strategy->scope());
    sums_.track(visit);
  }

  /// Resets the metric on every replica (spec P18).
  void reset(const InCrossReplica auto& context) {
    if constexpr (is_deferred)
      for (auto& of_replica : deferred_.of_replicas) of_replica.clear();
    sums_.reset(context);
  }

 private:
  static constexpr bool is_deferred = !S::Device::Space::host_accessible;
  /// True if values are in the host's memory; on devices, also for values there.
  template <class... Given>
  [[nodiscard]] static constexpr bool require_values_of_host() {
    if constexpr (is_deferred)
      return true;
    else
      return detail::require_values_in<HostMemory, Given...>();
  }
  struct NothingDeferred {
    explicit NothingDeferred(S&) {}
  };
  struct Deferred {
    explicit Deferred(S& of) : strategy(&of), of_replicas(of.num_local_replicas()) {}
    S* strategy;
    std::vector<detail::DeferredTallies<Tally>> of_replicas;
  };

  void add_deferred(const InCrossReplica auto& context) const {
    if constexpr (is_deferred)
      for (std::size_t local = 0; local < deferred_.of_replicas.size(); ++local)
        sums_.add_to(context, local, deferred_.of_replicas[local].take(true));
  }

  VariablesMade variables_made_;
  M measure_;
  // Mutable: reading the result first adds deferred tallies.
  mutable detail::TallySums<S, Tally> sums_;
  [[no_unique_address]] mutable std::conditional_t<is_deferred, Deferred, NothingDeferred> deferred_;
};

/// A metric whose result is a function of counts. Each replica counts into its own copies (OnRead, Sum), by its queue;
/// the result adds them up (spec P15). If a strategy keeps one copy, counting is a collective call.
template <Strategy S, CountingMetric M>
class Metric<S, M> : detail::NeedsContext {
 public:
  /// The type of the measure.
  using Measure = M;

  /// Throws InvalidArgument if the measure's `check` fails, and OutOfMemory.
  explicit Metric(S& strategy, M measure = {})
      : variables_made_(strategy),
        measure_(checked(std::move(measure))),
        counts_(
            strategy.template variable<double, OnRead, Sum>(measure_.shape(), 0.0, std::string(name()) + "/counts")) {
    if constexpr (S::Store::shared)
      batch_.emplace(strategy.template buffer<double>(measure_.shape(), std::string(name()) + "/batch"));
  }

  [[nodiscard]] std::string_view name() const noexcept { return measure_.name; }
  // See HasWorkerCopies.
  [[nodiscard]] const VariablesMade& variables_made() const noexcept { return variables_made_; }
  [[nodiscard]] std::tuple<const M&> arguments() const noexcept { return {measure_}; }

  /// Counts this replica's batch: outputs, targets and optionally one weight per row.
  void update(const InReplica auto& replica, const auto&... given) {
    using Memory = typename S::Device::Space;
    if constexpr (!detail::require_values_in<Memory, std::remove_cvref_t<decltype(given)>...>()) {
      return;
    } else if constexpr (S::Store::shared) {
      const auto batch = batch_->component(replica);
      replica.queue().fill(batch, 0.0);
      detail::count_cells(replica.queue(), measure_, batch, given...);
      replica.reduce_and_apply(sum, batch, counts_.component(replica), detail::AddTerm<double>{});
    } else {
      detail::count_cells(replica.queue(), measure_, counts_.component(replica), given...);
    }
  }
  /// Counts a batch in a traced step.
  void update(const InTrace auto& replica, const auto&... given) {
    counts_.assign_add(replica, traced_counts(MetricInTrace{}, measure_, replica, given...));
  }
  /// Counts a batch in the host's memory outside replica functions, for every replica (spec P16).
  void update(const InCrossReplica auto& context, const auto&... given) {
    static_assert(S::Device::Space::host_accessible,
                  "this metric counts in device memory: update it in a replica function, with a batch in that memory");
    if constexpr (!S::Device::Space::host_accessible) {
      return;
    } else if constexpr (!detail::require_values_in<HostMemory, std::remove_cvref_t<decltype(given)>...>()) {
      return;
    } else if constexpr (RemoteStore<typename S::Store>) {
      Tensor<double> batch{measure_.shape()};
      detail::count_cells(Cpu::Queue{}, measure_, batch.elements(), given...);
      S::Store::write(context, counts_, {0, batch.size()}, batch.data(), sum);
    } else {
      for (std::size_t local = 0; local < context.strategy().num_local_replicas(); ++local)
        detail::count_cells(Cpu::Queue{}, measure_, counts_.component(context, local), given...);
    }
  }

  /// Returns the current result. Waits for the replicas' queues.
  [[nodiscard]] double result(const InCrossReplica auto& context) const { return measure_.result(counts(context)); }
  /// Returns the current result. A collective call of the replicas.
  [[nodiscard]] double result(const InReplica auto& replica) const {
    detail::require_sums_of_all<S>();
    const auto counted = counts_.synchronized_read(replica);
    if constexpr (decltype(values_of(counted))::is_host_accessible) {
      return measure_.result(counted);
    } else {
      Tensor<double> here{measure_.shape()};
      dist::detail::copy_and_wait(replica.queue(), counted.elements(), here.elements());
      return measure_.result(here);
    }
  }
  using detail::NeedsContext::result;
  /// Returns the current result of this process's replicas. Not a collective call.
  [[nodiscard]] double result_here(const InCrossReplica auto& context) const {
    const dist::detail::HostCopies<Variable, std::remove_cvref_t<decltype(context)>> copies{counts_, context};
    Tensor<double> here{measure_.shape()};
    for (std::size_t copy = 0; copy < counts_.copies(); ++copy)
      for (std::size_t cell = 0; cell < here.size(); ++cell) here[cell] += copies[copy][cell];
    return measure_.result(here);
  }
  /// Returns the counts in the measure's shape: for nn::ConfusionMatrix, the matrix.
  [[nodiscard]] Tensor<double> counts(const InCrossReplica auto& context) const { return counts_.whole(context); }

  /// Tracks the counts. See Trackable.
  void track(auto& visit) { visit("counts", counts_); }

  /// Resets the metric on every replica (spec P18).
  void reset(const InCrossReplica auto& context) { counts_.assign(context, 0.0); }

 private:
  using Variable = decltype(std::declval<S&>().template variable<double, OnRead, Sum>(Shape{}, 0.0, std::string{}));

  static M checked(M measure) {
    measure.check();
    return measure;
  }

  VariablesMade variables_made_;
  M measure_;
  Variable counts_;
  // One batch's counts, if replicas share a copy.
  std::optional<decltype(std::declval<S&>().template buffer<double>(Shape{}, std::string{}))> batch_;
};

/// Deduces the strategy and the measure.
template <Strategy S, class M>
Metric(S&, M) -> Metric<S, M>;

template <class S, class M>
  requires(!Strategy<S> || !MetricFunction<M>)
struct Metric<S, M> : dist::detail::Refused {
  using Refused::Refused;
  static_assert(dist::detail::satisfied<Strategy<S>>,
                DIST_NEEDS_STRATEGY("a metric", "nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}}"));
  static_assert(dist::detail::satisfied<(!Strategy<S> || MetricFunction<M>)>,
                "a metric needs an nn::MetricFunction, which has a type Tally and a name: give nn::Metric one, such as "
                "nn::SparseCategoricalAccuracy{}");
};
/// Reports a first argument that is not a strategy.
template <dist::detail::NoStrategy First, class... Rest>
Metric(First&&, Rest&&...) -> Metric<std::remove_reference_t<First>, void>;

}  // namespace dist::nn
