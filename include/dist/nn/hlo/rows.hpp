/// Rows of outputs and targets in programs for XLA, for losses and metrics.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn::detail {

/// The memory space of program arrays, whose views only have a shape.
struct ProgramMemory {
  static constexpr bool host_accessible = false;
};
/// A view with the array's shape, for checks.
template <class A>
[[nodiscard]] TensorView<const typename A::Element, ProgramMemory> shape_only(const A& array) {
  return {nullptr, hlo::untyped::type_of(array.value()).shape};
}

/// An array in a program, of static or dynamic shape.
template <class A>
concept ArrayInProgram = requires(const A& array) {
  typename A::Element;
  { array.value() } -> std::same_as<hlo::Value>;
};

/// Reshapes an array to the shape of `Wanted`.
template <hlo::TracedArray Wanted, ArrayInProgram A>
[[nodiscard]] auto in_shape_of(const A& array) {
  using Result = typename Wanted::template With<typename A::Element>;
  return Result{hlo::untyped::reshape(array.value(), Result::type().shape)};
}
/// A traced array as a matrix, one row per batch row.
template <hlo::TracedArray A>
using MatrixOf =
    hlo::Traced<typename A::Element, A::extents[0], A::elements / (A::batch_axes == 0 ? A::extents[0] : 1)>;

/// The extent of the outputs' last axis, and the number of its rows in a row of the batch.
template <hlo::TracedArray A>
inline constexpr std::size_t classes_of_row = A::rank < 2 ? 1 : A::extents[A::rank - 1];
template <hlo::TracedArray A>
inline constexpr std::size_t positions_of_row = MatrixOf<A>::extents[1] / classes_of_row<A>;
template <class M, hlo::TracedArray A>
struct ExamplesIn {
  using Type = MatrixOf<A>;
};
template <AlongLastAxis M, hlo::TracedArray A>
  requires(positions_of_row<A> > 1)
struct ExamplesIn<M, A> {
  using Type = hlo::Traced<typename A::Element, A::extents[0], positions_of_row<A>, classes_of_row<A>>;
};
/// Outputs as a loss or metric `M` reads them, an example per row of the last axis: [rows, elements], or along the last
/// axis of more axes [rows, positions, classes].
template <class M, hlo::TracedArray A>
using ExamplesOf = typename ExamplesIn<M, A>::Type;

/// One number of type `T` per row of the last axis of `A`.
template <class T, hlo::TracedArray A>
using PerExample = hlo::detail::TracedWith<T, hlo::detail::without(A::extents, std::array{A::rank - 1})>;

/// Broadcasts one number per row of the last axis along the row.
template <hlo::TracedArray A>
[[nodiscard]] A along_last_axis(PerExample<typename A::Element, A> of_row) {
  return [&]<std::size_t... Axis>(std::index_sequence<Axis...>) { return hlo::broadcast<A, Axis...>(of_row); }
  (std::make_index_sequence<A::rank - 1>{});
}

/// The sample weight of each example of `Examples`, of type `T`. Throws ShapeMismatch unless there is one per row of
/// the outputs, or one per example.
template <class M, class T, hlo::TracedArray Examples, class Weights, hlo::TracedArray Outputs>
[[nodiscard]] PerExample<T, Examples> traced_weights(std::string_view reader, const Weights& weights,
                                                     const Outputs& outputs) {
  using Result = PerExample<T, Examples>;
  static_assert(dist::detail::satisfied<ArrayInProgram<Weights>>,
                "in a traced step, sample weights are part of the batch, or a traced array");
  if constexpr (ArrayInProgram<Weights>) {
    const std::size_t examples_of_each = examples_of_weight<M>(reader, shape_only(weights), shape_only(outputs));
    if (Result::rank == 1 || examples_of_each == 1) return in_shape_of<Result>(weights).template as<T>();
    return hlo::broadcast<Result, 0>(in_shape_of<hlo::Traced<T, Outputs::extents[0]>>(weights).template as<T>());
  } else {
    return dist::detail::refused<Result>();
  }
}

/// True if `M` accepts these outputs and targets in a program; otherwise a static_assert explains why not.
template <class M, class Outputs, class Targets>
[[nodiscard]] constexpr bool require_arrays_in_program() {
  static_assert(dist::detail::satisfied<hlo::TracedArray<Outputs>>,
                "in a traced step, the outputs given to a loss or a metric are the result of the network's forward, or "
                "another traced array");
  static_assert(dist::detail::satisfied<ArrayInProgram<Targets>>,
                "in a traced step, the targets given to a loss or a metric are part of the batch, or a traced array: a "
                "host tensor would become a constant of the program");
  if constexpr (hlo::TracedArray<Outputs> && ArrayInProgram<Targets>) {
    if constexpr (RequiresTarget<M, typename Targets::Element>) M::template require_target<typename Targets::Element>();
    return true;
  }
  return false;
}

/// The index of the largest number in each row of the last axis, the first among equals. Like on the host, a NaN in
/// first place is the largest, and any other NaN is ignored.
template <class T, std::size_t... Extents>
[[nodiscard]] auto index_of_largest(hlo::Traced<T, Extents...> scores) {
  using Scores = hlo::Traced<T, Extents...>;
  using Indices = hlo::Traced<std::int32_t, Extents...>;
  constexpr std::size_t axis = Scores::rank - 1;
  const auto index = hlo::iota<Indices, axis>();
  if constexpr (std::floating_point<T>) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    scores = hlo::select(scores == scores, scores, hlo::select(index == 0, Scores{infinity}, Scores{-infinity}));
  }
  const auto is_largest = scores == along_last_axis<Scores>(hlo::reduce<axis>(max, scores));
  return hlo::reduce<axis>(min,
                           hlo::select(is_largest, index, Indices{static_cast<std::int32_t>(Scores::extents[axis])}));
}
/// True for the element of `A` at this index of its row of the last axis.
template <hlo::TracedArray A>
[[nodiscard]] auto is_at(PerExample<std::int32_t, A> index) {
  using Indices = typename A::template With<std::int32_t>;
  return hlo::iota<Indices, A::rank - 1>() == along_last_axis<Indices>(index);
}

/// Converts labels to class indices; labels out of range become -1.
template <class Label, std::size_t... Extents>
[[nodiscard]] hlo::Traced<std::int32_t, Extents...> classes_of(hlo::Traced<Label, Extents...> labels,
                                                               std::size_t classes) {
  using Wide = hlo::Traced<std::int64_t, Extents...>;
  const Wide wide = labels.template as<std::int64_t>();
  const auto is_class = (wide >= Wide{0}) & (wide < Wide{static_cast<std::int64_t>(classes)});
  return hlo::select(is_class, wide, Wide{-1}).template as<std::int32_t>();
}
/// Converts labels to the class index of each example; the last axis of `Outputs` are the classes.
template <hlo::TracedArray Outputs, ArrayInProgram Labels>
[[nodiscard]] auto labels_of(const Labels& labels) {
  return classes_of(in_shape_of<PerExample<bool, Outputs>>(labels), Outputs::extents[Outputs::rank - 1]);
}

/// The axes of an array, without `Axis...`.
template <std::size_t Rank, std::size_t... Axis>
inline constexpr auto axes_without = [] {
  std::array<std::size_t, Rank - sizeof...(Axis)> rest{};
  std::size_t count = 0;
  for (std::size_t axis = 0; axis < Rank; ++axis)
    if (((axis != Axis) && ...)) rest[count++] = axis;
  return rest;
}();
/// One number per row of array `A`, whose rows extend along `Axis...`; broadcasts implicitly.
template <hlo::TracedArray A, std::size_t... Axis>
class NumberOfRow
    : public hlo::detail::TracedWith<
          typename A::Element, hlo::detail::without(A::extents, std::array<std::size_t, sizeof...(Axis)>{Axis...})> {
  using Base =
      hlo::detail::TracedWith<typename A::Element,
                              hlo::detail::without(A::extents, std::array<std::size_t, sizeof...(Axis)>{Axis...})>;

 public:
  using Base::Base;
  NumberOfRow(Base of_rows) noexcept : Base(of_rows) {}
  operator A() const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return hlo::broadcast<A, axes_without<A::rank, Axis...>[I]...>(Base{*this});
    }
    (std::make_index_sequence<A::rank - sizeof...(Axis)>{});
  }
  [[nodiscard]] friend NumberOfRow select(typename Base::template With<bool> condition, NumberOfRow a, NumberOfRow b) {
    return hlo::select(condition, Base{a}, Base{b});
  }
};

/// A program's counterpart of a row's threads (nn/row.hpp): formulas apply to all rows at once, which extend along
/// `Axis...`. `Each` stands for every element's index.
template <std::size_t... Axis>
struct TracedThreads {
  struct Each {};
};
template <std::size_t... Axis, class F>
[[nodiscard]] auto sum_of(TracedThreads<Axis...>, const F& f) {
  const auto each = f(typename TracedThreads<Axis...>::Each{});
  return NumberOfRow<std::remove_const_t<decltype(each)>, Axis...>{hlo::reduce<Axis...>(sum, each)};
}
/// The maximum of each row, constant for gradients.
template <std::size_t... Axis, class F>
[[nodiscard]] auto max_of(TracedThreads<Axis...>, const F& f) {
  const auto each = f(typename TracedThreads<Axis...>::Each{});
  return NumberOfRow<std::remove_const_t<decltype(each)>, Axis...>{hlo::stop_gradient(hlo::reduce<Axis...>(max, each))};
}
template <std::size_t... Axis, class F>
void for_each_of(TracedThreads<Axis...>, const F& f) {
  f(typename TracedThreads<Axis...>::Each{});
}
/// An array that a formula reads or writes.
template <class A>
struct TracedElements {
  A& array;
  [[nodiscard]] A& operator[](auto) const noexcept { return array; }
  void set(auto, A value) const { array = value; }
};

/// A program's counterpart of an element's index: all elements of arrays of this shape.
template <hlo::TracedArray A>
struct EachElement {
  [[nodiscard]] friend auto operator==(EachElement, PerExample<std::int32_t, A> index) { return is_at<A>(index); }
};

/// All rows of an array's last axis, with the interface of nn::Row.
template <hlo::TracedArray A>
class TracedRow {
 public:
  static constexpr std::size_t axis = A::rank - 1;
  using Element = A;
  using Number = NumberOfRow<A, axis>;
  using Each = EachElement<typename A::template With<bool>>;

  explicit TracedRow(A array) noexcept : array_(array) {}

  [[nodiscard]] static constexpr std::size_t size() noexcept { return A::extents[axis]; }
  [[nodiscard]] A operator[](Each) const noexcept { return array_; }
  /// 0 if the index is out of range.
  [[nodiscard]] Number operator[](PerExample<std::int32_t, A> index) const {
    return Number{hlo::reduce<axis>(sum, hlo::select(is_at<A>(index), array_, A{0}))};
  }

 private:
  A array_;
};
template <hlo::TracedArray A, class F>
[[nodiscard]] auto sum_of(TracedRow<A>, const F& f) {
  const auto each = f(typename TracedRow<A>::Each{});
  constexpr std::size_t axis = TracedRow<A>::axis;
  return NumberOfRow<std::remove_const_t<decltype(each)>, axis>{hlo::reduce<axis>(sum, each)};
}
template <hlo::TracedArray A, class F>
[[nodiscard]] auto count_of(TracedRow<A>, const F& f) {
  return hlo::reduce<TracedRow<A>::axis>(sum, number_of(f(typename TracedRow<A>::Each{})));
}
template <hlo::TracedArray A, class F>
void for_each_element(TracedRow<A>, const F& f) {
  f(typename TracedRow<A>::Each{});
}
template <hlo::TracedArray A>
[[nodiscard]] auto index_of_largest(TracedRow<A> row) {
  return index_of_largest(row[typename TracedRow<A>::Each{}]);
}
template <hlo::TracedArray A>
[[nodiscard]] auto element_or_nan(TracedRow<A> row, PerExample<std::int32_t, A> index) {
  using Number = typename TracedRow<A>::Number;
  const auto has = (index >= 0) & (index < static_cast<std::int32_t>(row.size()));
  return select(has, row[index], Number{dist::detail::quiet_nan<typename A::Element>});
}

/// A program's counterpart of an example's label: all examples' labels, -1 if out of range.
template <hlo::TracedArray Labels>
struct TracedLabels {
  using Element = std::int32_t;
  Labels labels;
};
template <hlo::TracedArray Labels>
[[nodiscard]] Labels class_of(TracedLabels<Labels> row) {
  return row.labels;
}

/// Converts targets for the formula `M`: labels, or rows of the outputs' shape and type `Target`.
template <class M, hlo::TracedArray Outputs, ArrayInProgram Targets>
[[nodiscard]] auto traced_targets(const Targets& targets) {
  if constexpr (TakesLabels<M>)
    return TracedLabels<PerExample<std::int32_t, Outputs>>{labels_of<Outputs>(targets)};
  else
    return TracedRow{in_shape_of<Outputs>(targets)};
}

/// True for each example of `Examples` that counts: of a valid row, with a label that the loss or metric does not
/// ignore.
template <hlo::TracedArray Examples, class M, ArrayInProgram Targets>
[[nodiscard]] PerExample<bool, Examples> examples_that_count([[maybe_unused]] const M& measure,
                                                             hlo::Traced<std::int32_t> rows,
                                                             [[maybe_unused]] const Targets& targets) {
  using Result = PerExample<bool, Examples>;
  const Result is_valid = hlo::broadcast<Result, 0>(first_rows<Examples::extents[0]>(rows));
  if constexpr (IgnoresClass<M>)
    if (ignores_labels(measure)) {
      using Labels = PerExample<std::int64_t, Examples>;
      const Labels labels = in_shape_of<Result>(targets).template as<std::int64_t>();
      return is_valid & (labels != Labels{measure.ignore_class});
    }
  return is_valid;
}

}  // namespace dist::nn::detail
