#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/device/cuda/launch.cuh>
#include <dist/nn/cuda/state.cuh>

namespace dist::nn::cuda {

/// The calling thread's position among the `threads` adjacent threads, a power of two, of a row. Each visits every
/// `threads`-th element, so memory accesses coalesce. Empty rows also have threads, because all threads of a block
/// must reach its barriers.
struct ThreadsOfRow {
  std::size_t count;
  unsigned number, threads;

  [[nodiscard]] DIST_HD bool is_first() const noexcept { return number == 0 && count > 0; }
};

/// Reduces one number per thread of a row, in an order that depends on `threads` only.
template <class T, class Combine>
[[nodiscard]] DIST_HD T combine_threads(const ThreadsOfRow& row, T mine, [[maybe_unused]] const Combine& combine) {
#if !defined(__CUDACC__) || defined(__CUDA_ARCH__)
  if (row.threads == 1) return mine;
  T* const all = dist::cuda::shared<T, dist::cuda::block_threads, struct OfThreadsOfRow>();
  T* const of_row = all + threadIdx.x - row.number;
  of_row[row.number] = mine;
  __syncthreads();
  for (unsigned half = row.threads / 2; half > 0; half /= 2) {
    if (row.number < half) of_row[row.number] = combine(of_row[row.number], of_row[row.number + half]);
    __syncthreads();
  }
  mine = of_row[0];
  __syncthreads();
#endif
  return mine;
}

/// a + b, for numbers and sums.
struct AddNumbers {
  template <class T>
  DIST_HD T operator()(const T& a, const T& b) const {
    T sum = a;
    sum += b;
    return sum;
  }
};
/// The greater of two numbers.
struct TakeGreater {
  template <class T>
  DIST_HD T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

/// See nn/row.hpp.
template <class F>
[[nodiscard]] DIST_HD auto sum_of(const ThreadsOfRow& row, const F& f) {
  decltype(f(std::size_t{})) sum{};
  for (std::size_t k = row.number; k < row.count; k += row.threads) sum += f(k);
  return combine_threads(row, sum, AddNumbers{});
}
template <class F>
[[nodiscard]] DIST_HD auto max_of(const ThreadsOfRow& row, const F& f) {
  using Number = decltype(f(std::size_t{}));
  Number largest = -static_cast<Number>(__builtin_huge_val());
  for (std::size_t k = row.number; k < row.count; k += row.threads) largest = TakeGreater{}(largest, f(k));
  return combine_threads(row, largest, TakeGreater{});
}
template <class F>
DIST_HD void for_each_of(const ThreadsOfRow& row, const F& f) {
  for (std::size_t k = row.number; k < row.count; k += row.threads) f(k);
}

template <class Body>
__global__ void __launch_bounds__(dist::cuda::block_threads)
    row_kernel(const Body body, const std::size_t rows, const std::size_t size, const unsigned threads) {
  const std::size_t row = std::size_t{blockIdx.x} * (dist::cuda::block_threads / threads) + threadIdx.x / threads;
  const bool is_row = row < rows;
  body(ThreadsOfRow{is_row ? size : 0, threadIdx.x % threads, threads}, is_row ? row : 0);
}

/// Calls `body(threads, row)` for each row, with about four elements per thread, and at most one block per row.
template <class Body>
void for_each_row(State& state, std::size_t rows, std::size_t size, const Body& body) {
  if (rows == 0) return;
  unsigned threads = 1;
  while (threads < dist::cuda::block_threads && 4 * std::size_t{threads} < size) threads *= 2;
  state.queue().enter();
  dist::cuda::launch(state.queue().stream(), dim3{dist::cuda::detail::blocks_for(rows * threads)},
                     dim3{dist::cuda::block_threads}, &row_kernel<Body>, body, rows, size, threads);
}

}  // namespace dist::nn::cuda
