/// Work on rows where a back end computes: on the host, one row after another; on a device, by the back end's kernels.
#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn::detail {

/// Calls `body(threads, row)` for each of `rows` rows of `size` elements: `threads`, a ThreadOfRow or the threads of a device
/// that share a row, is what the functions of nn/row.hpp visit the elements by. A body is a named type with a `DIST_HD` call.
template <class Backend, class Body>
void for_each_row([[maybe_unused]] typename Backend::State& state, std::size_t rows, std::size_t size,
                  const Body& body) {
  if constexpr (Backend::Device::Space::host_accessible)
    for (std::size_t row = 0; row < rows; ++row) body(ThreadOfRow{size}, row);
  else
    Backend::for_each_row(state, rows, size, body);
}

/// Where the sums of a column are, each in the same place among those of all columns.
template <class Sum>
struct SumsOfColumn {
  Sum* first;
  std::size_t columns;
  [[nodiscard]] Sum& operator[](std::size_t which) const { return first[which * columns]; }
};
/// `Terms::count` sums of each column of a matrix, all first ones first; without rows they are 0. `terms(row, column, sums)`,
/// DIST_HD, adds what an element brings to `sums[which]`.
template <class Backend, class Terms>
void sum_columns([[maybe_unused]] typename Backend::State& state, std::size_t rows, std::size_t columns,
                 const Terms& terms, typename Terms::Sum* to) {
  if constexpr (Backend::Device::Space::host_accessible) {
    using Sum = typename Terms::Sum;
    for (std::size_t i = 0; i < Terms::count * columns; ++i) to[i] = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      DIST_INDEPENDENT_LOOP
      for (std::size_t column = 0; column < columns; ++column) {
        terms(row, column, SumsOfColumn<Sum>{to + column, columns});
      }
    }
  } else {
    Backend::sum_columns(state, rows, columns, terms, to);
  }
}

}  // namespace dist::nn::detail
