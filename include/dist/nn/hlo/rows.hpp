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

/// Broadcasts one number per row along the row.
template <hlo::TracedArray Matrix>
[[nodiscard]] Matrix along_rows(hlo::Traced<typename Matrix::Element, Matrix::extents[0]> of_row) {
  return hlo::broadcast<Matrix, 0>(of_row);
}

/// The sample weight of each row, as `PerRow`. Throws ShapeMismatch unless there is one per row.
template <hlo::TracedArray PerRow, class Weights, hlo::TracedArray Outputs>
[[nodiscard]] PerRow traced_weights(std::string_view reader, const Weights& weights, const Outputs& outputs) {
  static_assert(dist::detail::satisfied<ArrayInProgram<Weights>>,
                "in a traced step, sample weights are part of the batch, or a traced array");
  if constexpr (ArrayInProgram<Weights>) {
    static_cast<void>(row_weights(reader, shape_only(weights), shape_only(outputs)));
    return in_shape_of<PerRow>(weights).template as<typename PerRow::Element>();
  } else {
    return dist::detail::refused<PerRow>();
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

/// The index of each row's largest number, the first among equals. Like on the host, a NaN in first place is the
/// largest, and any other NaN is ignored.
template <class T, std::size_t Rows, std::size_t Elements>
[[nodiscard]] hlo::Traced<std::int32_t, Rows> index_of_largest(hlo::Traced<T, Rows, Elements> scores) {
  using Scores = hlo::Traced<T, Rows, Elements>;
  using Indices = hlo::Traced<std::int32_t, Rows, Elements>;
  const auto index = hlo::iota<Indices, 1>();
  if constexpr (std::floating_point<T>) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    scores = hlo::select(scores == scores, scores, hlo::select(index == 0, Scores{infinity}, Scores{-infinity}));
  }
  const auto is_largest = scores == along_rows<Scores>(hlo::reduce<1>(max, scores));
  return hlo::reduce<1>(min, hlo::select(is_largest, index, Indices{std::int32_t{Elements}}));
}
/// True for the element at this index of its row.
template <std::size_t Elements, std::size_t Rows>
[[nodiscard]] hlo::Traced<bool, Rows, Elements> is_at(hlo::Traced<std::int32_t, Rows> index) {
  using Indices = hlo::Traced<std::int32_t, Rows, Elements>;
  return hlo::iota<Indices, 1>() == along_rows<Indices>(index);
}

/// Converts labels to class indices; labels out of range become -1.
template <class Label, std::size_t Rows>
[[nodiscard]] hlo::Traced<std::int32_t, Rows> classes_of(hlo::Traced<Label, Rows> labels, std::size_t classes) {
  using Wide = hlo::Traced<std::int64_t, Rows>;
  const Wide wide = labels.template as<std::int64_t>();
  const auto is_class = (wide >= Wide{0}) & (wide < Wide{static_cast<std::int64_t>(classes)});
  return hlo::select(is_class, wide, Wide{-1}).template as<std::int32_t>();
}
/// Converts labels [rows] or [rows, 1] to class indices; classes are the columns of `Outputs`.
template <hlo::TracedArray Outputs, ArrayInProgram Labels>
[[nodiscard]] auto labels_of(const Labels& labels) {
  return classes_of(in_shape_of<hlo::Traced<bool, Outputs::extents[0]>>(labels), Outputs::extents[1]);
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

/// A program's counterpart of an element's index: all elements of a matrix.
template <std::size_t Rows, std::size_t Elements>
struct EachElement {
  [[nodiscard]] friend auto operator==(EachElement, hlo::Traced<std::int32_t, Rows> index) {
    return is_at<Elements>(index);
  }
};

/// All rows of a matrix, with the interface of nn::Row.
template <hlo::TracedArray Matrix>
class TracedRow {
 public:
  using Element = Matrix;
  using Number = NumberOfRow<Matrix, 1>;
  using Each = EachElement<Matrix::extents[0], Matrix::extents[1]>;

  explicit TracedRow(Matrix matrix) noexcept : matrix_(matrix) {}

  [[nodiscard]] static constexpr std::size_t size() noexcept { return Matrix::extents[1]; }
  [[nodiscard]] Matrix operator[](Each) const noexcept { return matrix_; }
  /// 0 if the index is out of range.
  [[nodiscard]] Number operator[](hlo::Traced<std::int32_t, Matrix::extents[0]> index) const {
    return Number{hlo::reduce<1>(sum, hlo::select(is_at<size()>(index), matrix_, Matrix{0}))};
  }

 private:
  Matrix matrix_;
};
template <hlo::TracedArray Matrix, class F>
[[nodiscard]] auto sum_of(TracedRow<Matrix>, const F& f) {
  const auto each = f(typename TracedRow<Matrix>::Each{});
  return NumberOfRow<std::remove_const_t<decltype(each)>, 1>{hlo::reduce<1>(sum, each)};
}
template <hlo::TracedArray Matrix, class F>
[[nodiscard]] auto count_of(TracedRow<Matrix>, const F& f) {
  return hlo::reduce<1>(sum, number_of(f(typename TracedRow<Matrix>::Each{})));
}
template <hlo::TracedArray Matrix, class F>
void for_each_element(TracedRow<Matrix>, const F& f) {
  f(typename TracedRow<Matrix>::Each{});
}
template <hlo::TracedArray Matrix>
[[nodiscard]] auto index_of_largest(TracedRow<Matrix> row) {
  return index_of_largest(row[typename TracedRow<Matrix>::Each{}]);
}
template <hlo::TracedArray Matrix>
[[nodiscard]] auto element_or_nan(TracedRow<Matrix> row, hlo::Traced<std::int32_t, Matrix::extents[0]> index) {
  using Number = typename TracedRow<Matrix>::Number;
  const auto has = (index >= 0) & (index < static_cast<std::int32_t>(row.size()));
  return select(has, row[index], Number{dist::detail::quiet_nan<typename Matrix::Element>});
}

/// A program's counterpart of a row's label: all rows' labels, -1 if out of range.
template <std::size_t Rows>
struct TracedLabels {
  using Element = std::int32_t;
  hlo::Traced<std::int32_t, Rows> labels;
};
template <std::size_t Rows>
[[nodiscard]] hlo::Traced<std::int32_t, Rows> class_of(TracedLabels<Rows> row) {
  return row.labels;
}

/// A loss or a metric whose targets are one class index per row.
template <class M>
concept TakesLabels = M::takes_labels;

/// Converts targets for the formula `M`: labels, or rows of the outputs' shape and type `Target`.
template <class M, hlo::TracedArray Outputs, ArrayInProgram Targets>
[[nodiscard]] auto traced_targets(const Targets& targets) {
  if constexpr (TakesLabels<M>)
    return TracedLabels<Outputs::extents[0]>{labels_of<Outputs>(targets)};
  else
    return TracedRow{in_shape_of<Outputs>(targets)};
}

}  // namespace dist::nn::detail
