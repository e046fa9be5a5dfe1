#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/cuda/state.cuh>

namespace dist::nn::cuda {

/// Sums one column of one chunk; index `i` is chunk * columns + column.
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
/// Sums over all chunks.
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

/// Computes `Terms::count` sums per column of a matrix, all first ones before all second ones; `terms(row, column,
/// sums)` adds an element's terms. The order of additions depends on the size only, so results are deterministic.
/// Without rows the sums are 0.
///
/// Adjacent threads sum adjacent columns, so memory accesses coalesce; chunks of rows occupy more threads.
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
