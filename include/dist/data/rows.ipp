#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/data/rows.hpp>

namespace dist::data::detail {

DIST_INLINE std::size_t rows_in(const Shape& shape) {
  if (shape.rank() == 0)
    throw ShapeMismatch("A scalar has no rows",
                        "an array of rank 1 or more was expected, its first axis counts the rows",
                        "Give the array an outermost axis");
  return shape[0];
}

DIST_INLINE std::size_t rows_in_all(std::span<const std::size_t> parts, bool are_features_and_labels) {
  for (std::size_t part = 1; part < parts.size(); ++part) {
    if (parts[part] == parts[0]) continue;
    if (are_features_and_labels)
      throw ShapeMismatch("Features and labels differ in number", concat(parts[0], " features, ", parts[1], " labels"),
                          "Give one label for each feature");
    throw ShapeMismatch("The arrays of one batch differ in their number of rows",
                        concat("array 0 has ", parts[0], ", array ", part, " has ", parts[part]),
                        "Give every array one row for each example");
  }
  return parts[0];
}

DIST_INLINE Shape shape_of_rows(const Shape& row, std::size_t rows, std::size_t element_bytes) {
  const std::size_t elements = row.elements() == 0 ? 1 : row.elements();
  if (rows > std::numeric_limits<std::ptrdiff_t>::max() / element_bytes / elements)
    throw InvalidArgument("A batch is larger than any memory", concat(rows, " rows of shape ", to_string(row)),
                          "Make the batch smaller");
  return row.stacked(rows);
}

DIST_INLINE void place_row(void* batch, const Shape& batch_shape, std::size_t row, const void* elements,
                           const Shape& shape, std::size_t element_bytes) {
  const std::span<const std::size_t> expected = batch_shape.extents().subspan(1);
  if (!std::equal(shape.extents().begin(), shape.extents().end(), expected.begin(), expected.end()))
    throw ShapeMismatch("Elements of one batch differ in shape",
                        concat("element ", row, " has shape ", to_string(shape), ", the elements before it ",
                               to_string(batch_shape.row())),
                        "Give them the same shape with map, or use batches of one element");
  const std::size_t bytes = shape.elements() * element_bytes;
  if (bytes > 0) std::memcpy(static_cast<std::byte*>(batch) + row * bytes, elements, bytes);
}

DIST_INLINE std::size_t larger_capacity(std::size_t capacity, std::size_t most) {
  if (capacity == most)
    throw InvalidArgument("A dataset has more elements than its cardinality",
                          concat("cardinality() returned ", capacity),
                          "Return the number of elements from cardinality(), or unknown");
  return capacity < most / 2 ? 2 * capacity : most;
}

}  // namespace dist::data::detail
