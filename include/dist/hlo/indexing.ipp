#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include <dist/core/text.hpp>
#include <dist/hlo/indexing.hpp>

namespace dist::hlo::untyped {

namespace detail {

[[nodiscard]] DIST_INLINE Shape row_shape(Value table) { return type_of(table).shape.row(); }

/// The axes of a row after the axes of the indices: "1, 2".
[[nodiscard]] DIST_INLINE std::string axes_of_row(Value rows, Value table) {
  const std::size_t first = type_of(rows).shape.rank();
  return dist::joined(axes_in_order(row_shape(table).rank()), ", ", [&](std::size_t axis) { return first + axis; });
}

}  // namespace detail

DIST_INLINE std::vector<Value> first_along(std::size_t rank, std::size_t axis, Value first) {
  std::vector<Value> all(rank, constant_like(first, 0));
  all[axis] = first;
  return all;
}

DIST_INLINE Value dynamic_slice(Value x, const std::vector<Value>& first, const Shape& shape) {
  std::vector<Value> operands{x};
  operands.insert(operands.end(), first.begin(), first.end());
  std::vector<Pullback> pullbacks(operands.size());
  pullbacks[0] = [x, first](Value, Value g) { return dynamic_update_slice(constant_like(x, 0), g, first); };
  return Trace::current().add(
      {"dynamic_slice", std::move(operands), list("slice_sizes", shape.extents()), std::move(pullbacks)},
      {type_of(x).element, shape});
}

DIST_INLINE Value dynamic_update_slice(Value x, Value part, const std::vector<Value>& first) {
  std::vector<Value> operands{x, part};
  operands.insert(operands.end(), first.begin(), first.end());
  std::vector<Pullback> pullbacks(operands.size());
  pullbacks[0] = [part, first](Value, Value g) { return dynamic_update_slice(g, constant_like(part, 0), first); };
  pullbacks[1] = [part, first](Value, Value g) { return dynamic_slice(g, first, type_of(part).shape); };
  return Trace::current().add({"dynamic_update_slice", std::move(operands), "", std::move(pullbacks)},
                              Type{type_of(x)});
}

DIST_INLINE Value take(Value table, Value rows) {
  const Shape row = detail::row_shape(table), of_rows = type_of(rows).shape;
  Axes sizes{1}, extents = extents_of(of_rows);
  sizes.insert(sizes.end(), row.extents().begin(), row.extents().end());
  extents.insert(extents.end(), row.extents().begin(), row.extents().end());
  return Trace::current().add(
      {"gather",
       {table, rows},
       concat("dimension_numbers = #stablehlo.gather<offset_dims = [", detail::axes_of_row(rows, table),
              "], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = ", of_rows.rank(), ">, ",
              list("slice_sizes", sizes)),
       {[table, rows](Value, Value g) { return scatter_add(constant_like(table, 0), rows, g); }, nullptr}},
      {type_of(table).element, Shape{extents}});
}

DIST_INLINE Value scatter_add(Value table, Value rows, Value updates) {
  Operation operation{
      "scatter",
      {table, rows, updates},
      concat("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [", detail::axes_of_row(rows, table),
             "], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = ",
             type_of(rows).shape.rank(), ">"),
      {[](Value, Value g) { return g; }, nullptr, [rows](Value, Value g) { return take(g, rows); }}};
  operation.regions.push_back(reducer("add", type_of(table).element));
  return Trace::current().add(std::move(operation), Type{type_of(table)});
}

}  // namespace dist::hlo::untyped
