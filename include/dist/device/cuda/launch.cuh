/// Kernels that run a functor for each index. All kernel launches are in this header.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/kernel_arguments.hpp>
#include <dist/device/cuda/last_work.hpp>
#include <dist/device/cuda/shared.cuh>
#include <dist/device/cuda/stream.hpp>

namespace dist::cuda {

/// Launches a kernel on `stream`, whose GPU the calling thread must have selected. At DIST_CONTRACT_LEVEL 2, throws
/// HostPointer if an argument contains an address that this GPU cannot access.
template <class... Expected, class... Given>
void launch(StreamRef stream, dim3 blocks, dim3 threads, void (*kernel)(Expected...), Given&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Expected> && ...),
                "a functor is copied to the GPU byte by byte, but this functor or one of its members is not trivially "
                "copyable: let it hold numbers and the data() of device spans");
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream.get();
  constexpr const WorkName& work = kernel_work<Expected...>;
  if constexpr (DIST_CONTRACT_LEVEL >= 2) {
    std::size_t number = 0;
    (require_no_host_pointers<std::decay_t<Expected>>(stream.device(), work, ++number, arguments), ...);
  }
  const cudaError_t answer = cudaLaunchKernelEx(&config, kernel, std::forward<Given>(arguments)...);
  if (answer != cudaSuccess) [[unlikely]]
    cuda::check(answer, concat("cudaLaunchKernelEx of a kernel ", work.parameters), stream.device());
  note_work(stream.device(), work);
}

/// Threads per block.
inline constexpr unsigned block_threads = 256;

namespace detail {

/// Returns the number of blocks of block_threads threads for `count` indices, one per thread.
[[nodiscard]] inline unsigned blocks_for(std::size_t count) {
  const std::size_t blocks = (count + block_threads - 1) / block_threads;
  DIST_EXPECT(blocks <= 0x7fffffff);
  return static_cast<unsigned>(blocks);
}

template <class Body>
__global__ void __launch_bounds__(block_threads) for_each_kernel(const Body body, const IndexRange range) {
  const std::size_t i = range.begin + std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < range.end) body(i);
}

/// Reduces the indices of each block into `partial[block]`. The order depends only on the numbers of blocks and
/// indices.
template <class T, class Op, class Body>
__global__ void __launch_bounds__(block_threads)
    reduce_kernel(const Op op, const T identity, const Body body, const IndexRange range, T* const partial) {
  constexpr unsigned groups = 16, group = block_threads / groups;
  T* const of_threads = shared<T, block_threads, struct OfThreads>();
  T* const of_groups = shared<T, groups, struct OfGroups>();
  const unsigned thread = threadIdx.x;
  T combined = identity;
  const std::size_t stride = std::size_t{gridDim.x} * block_threads;
  for (std::size_t i = range.begin + std::size_t{blockIdx.x} * block_threads + thread; i < range.end; i += stride)
    combined = op(combined, static_cast<T>(body(i)));
  of_threads[thread] = combined;
  __syncthreads();
  if (thread < groups) {
    combined = of_threads[thread * group];
    for (unsigned k = 1; k < group; ++k) combined = op(combined, of_threads[thread * group + k]);
    of_groups[thread] = combined;
  }
  __syncthreads();
  if (thread == 0) {
    for (unsigned k = 1; k < groups; ++k) combined = op(combined, of_groups[k]);
    partial[blockIdx.x] = combined;
  }
}

/// Combines the `blocks` partial results of `count` indices in one thread.
template <class Result, class T, class Op>
__global__ void finish_kernel(const Op op, const T* const partial, const unsigned blocks, const std::size_t count,
                              Result* const result) {
  T combined = partial[0];
  for (unsigned block = 1; block < blocks; ++block) combined = op(combined, partial[block]);
  *result = static_cast<Result>(Op::finish(combined, count));
}

}  // namespace detail

/// Calls `body(i)` for each index of the range, one thread each.
template <class Body>
void for_each(StreamRef stream, IndexRange range, const Body& body) {
  if (range.size() == 0) return;
  launch(stream, dim3{detail::blocks_for(range.size())}, dim3{block_threads}, &detail::for_each_kernel<Body>, body,
         range);
}

/// The maximum number of partial results of a reduction.
inline constexpr std::size_t most_partials = 64;
/// The maximum size of a partial result in bytes.
inline constexpr std::size_t most_partial_bytes = 32;

/// Reduces `body(i)` over the range with `op` into `*to`, in GPU memory. `partials` is GPU memory for most_partials
/// results of most_partial_bytes. The order depends only on the range.
template <class Op, class Body, class Result>
void transform_reduce(StreamRef stream, Op op, IndexRange range, const Body& body, std::byte* partials, Result* to) {
  using T = Accumulator<Result>;
  static_assert(sizeof(T) <= most_partial_bytes);
  constexpr std::size_t indices_per_block = 16 * std::size_t{block_threads};
  const std::size_t full = (range.size() + indices_per_block - 1) / indices_per_block;
  const auto blocks = static_cast<unsigned>(full == 0 ? 1 : full < most_partials ? full : most_partials);
  T* const partial = reinterpret_cast<T*>(partials);
  const T identity = ::dist::detail::identity_of<T>(op);
  launch(stream, dim3{blocks}, dim3{block_threads}, &detail::reduce_kernel<T, Op, Body>, op, identity, body, range,
         partial);
  launch(stream, dim3{1}, dim3{1}, &detail::finish_kernel<Result, T, Op>, op, static_cast<const T*>(partial), blocks,
         range.size(), to);
}

}  // namespace dist::cuda
