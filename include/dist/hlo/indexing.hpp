#pragma once

#include <concepts>
#include <cstddef>
#include <vector>

#include <dist/hlo/operations.hpp>

namespace dist::hlo {

namespace untyped {

/// Returns the block of shape `shape` that starts at index `first[i]` along axis i.
[[nodiscard]] Value dynamic_slice(Value x, const std::vector<Value>& first, const Shape& shape);
/// Returns `x` with the block that starts at index `first[i]` along axis i replaced by `part`.
[[nodiscard]] Value dynamic_update_slice(Value x, Value part, const std::vector<Value>& first);
/// Returns rows of `table` by index, with the axes of `rows`, then of a row.
[[nodiscard]] Value take(Value table, Value rows);
/// Adds `updates` to the rows of `table` with these indices.
[[nodiscard]] Value scatter_add(Value table, Value rows, Value updates);

/// Start indices: `first` along `axis`, 0 along all others.
[[nodiscard]] std::vector<Value> first_along(std::size_t rank, std::size_t axis, Value first);

}  // namespace untyped

/// Returns Count elements along Axis from a computed index, clamped to the valid range.
template <std::size_t Axis, std::size_t Count, class T, std::size_t... Extents, std::integral Index>
[[nodiscard]] auto dynamic_slice(Traced<T, Extents...> x, Traced<Index> first) {
  using X = Traced<T, Extents...>;
  static_assert(Axis < X::rank, "hlo::dynamic_slice: the argument has no such axis");
  static_assert(X::extents[Axis] != batch, "hlo::dynamic_slice cannot cut an axis that is hlo::batch");
  static_assert(Count <= X::extents[Axis], "hlo::dynamic_slice: the argument has fewer elements along this axis");
  using Result = detail::TracedWith<T, detail::with(X::extents, Axis, Count)>;
  return Result{
      untyped::dynamic_slice(x.value(), untyped::first_along(X::rank, Axis, first.value()), Result::type().shape)};
}

/// Returns `x` with `part` inserted along Axis at a computed index, clamped to the valid range.
template <std::size_t Axis, class T, std::size_t... Extents, std::size_t... OfPart, std::integral Index>
[[nodiscard]] Traced<T, Extents...> dynamic_update_slice(Traced<T, Extents...> x, Traced<T, OfPart...> part,
                                                         Traced<Index> first) {
  using X = Traced<T, Extents...>;
  constexpr detail::Extents<sizeof...(OfPart)> of_part{OfPart...};
  static_assert(Axis < X::rank && X::rank == of_part.size(), "hlo::dynamic_update_slice: an argument has no such axis");
  static_assert(X::extents[Axis] != batch && of_part[Axis] != batch,
                "hlo::dynamic_update_slice cannot cut an axis that is hlo::batch");
  static_assert(of_part[Axis] <= X::extents[Axis] && detail::with(of_part, Axis, X::extents[Axis]) == X::extents,
                "hlo::dynamic_update_slice: the part has other extents, or too many elements along this axis");
  return X{untyped::dynamic_update_slice(x.value(), part.value(), untyped::first_along(X::rank, Axis, first.value()))};
}

/// Gathers rows of `table` by index, with the axes of `rows`, then of a row. Indices out of range are clamped,
/// and pass no gradient.
template <class T, std::size_t Rows, std::size_t... OfRow, std::integral Index, std::size_t... OfRows>
[[nodiscard]] Traced<T, OfRows..., OfRow...> take(Traced<T, Rows, OfRow...> table, Traced<Index, OfRows...> rows) {
  static_assert(Rows != batch && ((OfRow != batch) && ...),
                "hlo::take cannot take rows of an array with an axis that is hlo::batch");
  return Traced<T, OfRows..., OfRow...>{untyped::take(table.value(), rows.value())};
}

/// Adds `updates` to the rows of `table` with these indices; ignores indices out of range.
template <class T, std::size_t Rows, std::size_t... OfRow, std::integral Index, std::size_t... OfRows>
[[nodiscard]] Traced<T, Rows, OfRow...> scatter_add(Traced<T, Rows, OfRow...> table, Traced<Index, OfRows...> rows,
                                                    Traced<T, OfRows..., OfRow...> updates) {
  static_assert(Rows != batch && ((OfRow != batch) && ...),
                "hlo::scatter_add cannot add to rows of an array with an axis that is hlo::batch");
  return Traced<T, Rows, OfRow...>{untyped::scatter_add(table.value(), rows.value(), updates.value())};
}

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/indexing.ipp>
#endif
