/// What losses and metrics in programs for XLA look at: rows of outputs and of targets.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn::detail {

/// Memory of a program, which is not there while the program is traced: views of it have a shape only.
struct ProgramMemory {
  static constexpr bool host_accessible = false;
};
/// A view with the shape that an array has in the program, for checks of shapes.
template <class A>
[[nodiscard]] TensorView<const typename A::Element, ProgramMemory> shape_only(const A& array) {
  return {nullptr, hlo::untyped::type_of(array.value()).shape};
}

/// An array of a program, of a shape that is known when C++ compiles or when the program is traced.
template <class A>
concept ArrayInProgram = requires(const A& array) {
  typename A::Element;
  { array.value() } -> std::same_as<hlo::Value>;
};

/// The elements of an array in the shape of `Wanted`, of which it has as many.
template <hlo::TracedArray Wanted, ArrayInProgram A>
[[nodiscard]] auto in_shape_of(const A& array) {
  using Result = typename Wanted::template With<typename A::Element>;
  return Result{hlo::untyped::reshape(array.value(), Result::type().shape)};
}
/// A traced array as a matrix: one row for each of its rows.
template <hlo::TracedArray A>
using MatrixOf =
    hlo::Traced<typename A::Element, A::extents[0], A::elements / (A::batch_axes == 0 ? A::extents[0] : 1)>;

/// A number for each row, for each of its elements.
template <hlo::TracedArray Matrix>
[[nodiscard]] Matrix along_rows(hlo::Traced<typename Matrix::Element, Matrix::extents[0]> of_row) {
  return hlo::broadcast<Matrix, 0>(of_row);
}

/// The weight of each row, as numbers of `PerRow`. Throws ShapeMismatch unless there is one per row.
template <hlo::TracedArray PerRow, class Weights, hlo::TracedArray Outputs>
[[nodiscard]] PerRow traced_weights(std::string_view reader, const Weights& weights, const Outputs& outputs) {
  static_assert(dist::detail::satisfied<ArrayInProgram<Weights>>,
                "sample weights in a step that is traced are a part of its batch, or a traced array");
  if constexpr (ArrayInProgram<Weights>) {
    static_cast<void>(row_weights(reader, shape_only(weights), shape_only(outputs)));
    return in_shape_of<PerRow>(weights).template as<typename PerRow::Element>();
  } else {
    return dist::detail::refused<PerRow>();
  }
}

/// Refuses, in a sentence, what a loss or a metric `M` cannot look at in a program, and says whether it can.
template <class M, class Outputs, class Targets>
[[nodiscard]] constexpr bool require_arrays_in_program() {
  static_assert(
      dist::detail::satisfied<hlo::TracedArray<Outputs>>,
      "in a step that is traced, the outputs of a loss or a metric are what the network's forward returns, or "
      "another traced array");
  static_assert(
      dist::detail::satisfied<ArrayInProgram<Targets>>,
      "in a step that is traced, the targets of a loss or a metric are a part of its batch, or a traced array: "
      "a tensor of the host would be a constant of the program");
  if constexpr (hlo::TracedArray<Outputs> && ArrayInProgram<Targets>) {
    if constexpr (RequiresTarget<M, typename Targets::Element>) M::template require_target<typename Targets::Element>();
    return true;
  }
  return false;
}

/// Where the largest number of each row is, the first of equals. As on the host, no number is above a NaN that comes first,
/// and no other NaN is above a number.
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
/// Whether an element's number in its row is this one.
template <std::size_t Elements, std::size_t Rows>
[[nodiscard]] hlo::Traced<bool, Rows, Elements> is_at(hlo::Traced<std::int32_t, Rows> index) {
  using Indices = hlo::Traced<std::int32_t, Rows, Elements>;
  return hlo::iota<Indices, 1>() == along_rows<Indices>(index);
}

/// Labels as the numbers of classes: what is none of `classes` is -1.
template <class Label, std::size_t Rows>
[[nodiscard]] hlo::Traced<std::int32_t, Rows> classes_of(hlo::Traced<Label, Rows> labels, std::size_t classes) {
  using Wide = hlo::Traced<std::int64_t, Rows>;
  const Wide wide = labels.template as<std::int64_t>();
  const auto is_class = (wide >= Wide{0}) & (wide < Wide{static_cast<std::int64_t>(classes)});
  return hlo::select(is_class, wide, Wide{-1}).template as<std::int32_t>();
}
/// The same of labels as a batch has them, [rows] or [rows, 1], of which each is one of the classes that a row of `Outputs`
/// has.
template <hlo::TracedArray Outputs, ArrayInProgram Labels>
[[nodiscard]] auto labels_of(const Labels& labels) {
  return classes_of(in_shape_of<hlo::Traced<bool, Outputs::extents[0]>>(labels), Outputs::extents[1]);
}

}  // namespace dist::nn::detail
