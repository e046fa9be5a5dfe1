#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/cuda/state.cuh>

namespace dist::nn::cuda {

/// The sum of a column's elements.
template <class T>
struct SumOfElements {
  using Sum = T;
  static constexpr std::size_t count = 1;
  const T* matrix;
  std::size_t columns;
  template <class Sums>
  DIST_HD void operator()(std::size_t row, std::size_t column, Sums&& sums) const {
    sums[0] += matrix[row * columns + column];
  }
};

/// What the rows of a chunk add to the sums of a column; chunks and columns are numbered together, columns first.
template <class Terms>
struct SumChunk {
  using Sum = typename Terms::Sum;
  Terms terms;
  std::size_t rows, columns, rows_of_chunk;
  Sum* to;

  DIST_HD void operator()(std::size_t i) const {
    const std::size_t chunk = i / columns, column = i % columns;
    const std::size_t first = chunk * rows_of_chunk;
    const std::size_t end = first + rows_of_chunk < rows ? first + rows_of_chunk : rows;
    Sum sums[Terms::count] = {};
    for (std::size_t row = first; row < end; ++row) terms(row, column, sums);
    for (std::size_t which = 0; which < Terms::count; ++which)
      to[(chunk * Terms::count + which) * columns + column] = sums[which];
  }
};
template <class Sum>
struct AddChunks {
  const Sum* of_chunks;
  std::size_t chunks, size;
  Sum* to;

  DIST_HD void operator()(std::size_t i) const {
    Sum sum{0};
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) sum += of_chunks[chunk * size + i];
    to[i] = sum;
  }
};

/// `Terms::count` sums of each column of a matrix, all first ones first. `terms(row, column, sums)` adds what an element
/// brings. In the same order for a size, so that the same matrix gives the same bits; without rows the sums are 0.
///
/// Neighbouring threads add neighbouring columns, so that they read memory together; of many rows there are chunks, so that
/// there is work for many threads.
template <class Terms>
void sum_columns(State& state, std::size_t rows, std::size_t columns, const Terms& terms, typename Terms::Sum* to) {
  using Sum = typename Terms::Sum;
  std::size_t rows_of_chunk = 16;
  while (rows_of_chunk * rows_of_chunk < rows) rows_of_chunk *= 2;
  const std::size_t chunks = (rows + rows_of_chunk - 1) / rows_of_chunk;
  const std::size_t size = Terms::count * columns;
  if (chunks == 1)
    return state.queue().for_each({0, columns}, SumChunk<Terms>{terms, rows, columns, rows_of_chunk, to});
  auto* const of_chunks = reinterpret_cast<Sum*>(state.workspace(chunks * size * sizeof(Sum)));
  state.queue().for_each({0, chunks * columns}, SumChunk<Terms>{terms, rows, columns, rows_of_chunk, of_chunks});
  state.queue().for_each({0, size}, AddChunks<Sum>{of_chunks, chunks, size, to});
}

}  // namespace dist::nn::cuda
