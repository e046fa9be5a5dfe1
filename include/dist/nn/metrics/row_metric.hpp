#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/future.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/row_loss.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// A tally that a device computes: `tally()` waits, and returns `of(work)`.
template <Future W, class Of>
struct DeferredTally {
  W work;  ///< the computation, a Future
  Of of;   ///< makes the tally from it

  [[nodiscard]] bool is_done() const { return work.is_done(); }
  [[nodiscard]] auto tally() const { return of(work); }
};
/// Deduces the template arguments.
template <class W, class Of>
DeferredTally(W, Of) -> DeferredTally<W, Of>;

namespace detail {

/// Two futures, done when both are.
template <Future First, Future Second>
struct AllOf {
  First first;
  Second second;

  void wait() const {
    first.wait();
    second.wait();
  }
  [[nodiscard]] bool is_done() const { return first.is_done() && second.is_done(); }
};
template <class First, class Second>
AllOf(First, Second) -> AllOf<First, Second>;

/// One replica's deferred tallies, in the order of its batches.
template <class Tally>
class DeferredTallies {
 public:
  template <class Deferred>
  void add(Deferred deferred) {
    waiting_.push_back(std::make_unique<EntryOf<Deferred>>(std::move(deferred)));
  }
  void clear() noexcept {
    waiting_.clear();
    ready_ = {};
  }

  /// Removes completed tallies, or with `waits` all, and returns their sum. If one throws it is removed, too, and
  /// earlier ones are in the next sum.
  [[nodiscard]] Tally take(bool waits) {
    std::size_t taken = 0;
    const auto forget = [&] {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(taken));
    };
    try {
      while (taken < waiting_.size() && (waits || waiting_[taken]->is_done())) {
        const Tally one = waiting_[taken++]->tally();
        ready_.total += one.total;
        ready_.count += one.count;
      }
    } catch (...) {
      forget();
      throw;
    }
    forget();
    return std::exchange(ready_, Tally{});
  }

 private:
  struct Entry {
    virtual ~Entry() = default;
    [[nodiscard]] virtual bool is_done() const = 0;
    [[nodiscard]] virtual Tally tally() const = 0;
  };
  template <class Deferred>
  struct EntryOf final : Entry {
    explicit EntryOf(Deferred&& deferred) : of(std::move(deferred)) {}
    [[nodiscard]] bool is_done() const override { return of.is_done(); }
    [[nodiscard]] Tally tally() const override { return of.tally(); }
    Deferred of;
  };

  std::vector<std::unique_ptr<Entry>> waiting_;
  Tally ready_{};
};

}  // namespace detail

/// A metric that is a mean over rows, optionally weighted: `of_row(outputs, targets)` is a row's value, DIST_HD in
/// networks on GPUs. Its Tally holds doubles. Like a loss it may have a `check(outputs, targets)`, by default for equal
/// shapes, and a `require_target<Target>()` with a static_assert.
template <class M>
concept MeasuresRows = requires(const M measure, Row<const float> outputs, Row<const std::int32_t> targets) {
  { measure.of_row(outputs, targets) } -> std::same_as<double>;
};

namespace detail {

/// The sums of the weighted values of examples, and of their weights.
struct WeightedSums {
  double values, weights;
};
struct AddWeightedSums : dist::detail::IdentityFinish {
  using Record = WeightedSums;
  template <std::same_as<Record>>
  static constexpr Record identity{0, 0};
  DIST_HD Record operator()(const Record& a, const Record& b) const {
    return {a.values + b.values, a.weights + b.weights};
  }
};

/// Returns an example's WeightedSums; zeros if the metric leaves it out.
template <class M, class T, class Target, class Weight>
struct WeightedRow {
  M measure;
  const T* values;
  const Target* targets;
  std::size_t values_size, targets_size;
  Weight weight;
  DIST_HD WeightedSums operator()(std::size_t row) const {
    const Row<const Target> target{targets + row * targets_size, targets_size};
    if (!is_counted(measure, target)) return {0, 0};
    const auto factor = static_cast<double>(weight(row));
    return {factor * measure.of_row(Row<const T>{values + row * values_size, values_size}, target), factor};
  }
};

/// A metric with a `name` that can be assigned.
template <class M>
concept KeepsName = requires(M measure) {
  measure.name = std::string_view{};
};
/// Returns the metric for a kernel, without its name, which is in the host's memory.
template <class M>
[[nodiscard]] M without_name(M measure) {
  if constexpr (KeepsName<M>) measure.name = {};
  return measure;
}

template <class M, class T, class Target>
concept MeasuresRowsOf = requires(const M measure, Row<const T> outputs, Row<const Target> targets) {
  { measure.of_row(outputs, targets) } -> std::same_as<double>;
};
/// True if a metric accepts these types; else a static_assert fails.
template <class M, class Target, bool fits>
[[nodiscard]] constexpr bool require_rows_of_metric() {
  if constexpr (RequiresTarget<M, Target>)
    M::template require_target<Target>();
  else
    static_assert(fits, "this metric does not support outputs and targets of these types");
  return fits;
}

/// Measures a batch by `queue`. Returns a Tally, or in device memory a DeferredTally. Throws ShapeMismatch.
template <MeasuresRows M, class Q, Values Outputs, Values Targets, class Weights = Unweighted>
[[nodiscard]] auto measure_rows([[maybe_unused]] const Q& queue, const M& measure, const Outputs& outputs,
                                const Targets& given, const Weights& sample_weight = {}) {
  const auto values = values_of(outputs);
  const auto targets = values_of(given);
  using T = std::remove_const_t<typename decltype(values)::Element>;
  using Target = std::remove_const_t<typename decltype(targets)::Element>;
  using Tally = typename M::Tally;
  if constexpr (require_rows_of_metric<M, Target, MeasuresRowsOf<M, T, Target>>()) {
    static_assert(are_on_host<Outputs> == are_on_host<Targets>,
                  "the targets of a metric must be in the same memory as the outputs: copy them there");
    const auto examples = examples_of(measure, measure.name, values, targets);
    const auto weight = example_weights<M>(measure.name, sample_weight, values);
    const WeightedRow<M, T, Target, std::remove_const_t<decltype(weight)>> of_row{
        without_name(measure),       values.data(), targets.data(), examples.outputs.row_size(),
        examples.targets.row_size(), weight};
    const IndexRange rows{0, examples.outputs.rows()};
    const auto tally_of = [](const WeightedSums& sums) { return Tally{sums.values, sums.weights}; };
    if constexpr (are_on_host<Outputs, Targets>) {
      WeightedSums sums{0, 0};
      for (std::size_t row = 0; row < rows.end; ++row) sums = AddWeightedSums{}(sums, of_row(row));
      return tally_of(sums);
    } else {
      return DeferredTally{queue.start_transform_reduce(AddWeightedSums{}, rows, of_row),
                           [tally_of](const auto& measured) { return tally_of(measured.value()); }};
    }
  } else {
    return dist::detail::refused<Tally>();
  }
}

}  // namespace detail

}  // namespace dist::nn
