/// Kernels that both nvcc and the host's compiler compile, for smoke.cu and its twins. DIST_SMOKE_SIDE is a different
/// namespace for each of the two, so that the linker does not mix their code.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/device/cuda/launch.cuh>
#include <support/fake_cuda/twin.hpp>

namespace smoke {

/// Twins of the kernels below, in their order.
inline constexpr std::size_t kernel_count = 4;
extern const std::array<fake_cuda::Twin, kernel_count> twins;

namespace DIST_SMOKE_SIDE {

struct Saxpy {
  const float* x;
  float* y;
  float a;
  DIST_HD void operator()(std::size_t i) const { y[i] = a * x[i] + y[i]; }
};
struct SquareOf {
  const double* values;
  DIST_HD double operator()(std::size_t i) const { return values[i] * values[i]; }
};
/// A type of this side, which is part of the name of `finish_kernel`.
struct Total : dist::Sum {};

/// A type with padding between arguments.
struct Odd {
  char letters[3];
};
struct alignas(16) Wide {
  float x, y, z, w;
};
struct Seen {
  char letter, last;
  short number;
  float w;
  double value;
  std::size_t end;
  unsigned thread, block, threads, blocks;
  bool flag;
};
__global__ void note_arguments(char letter, double value, Odd odd, bool flag, Wide wide, short number,
                               dist::IndexRange range, Seen* seen) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  seen[block * threads + thread] = {letter,    odd.letters[2], number, wide.w,  value,
                                    range.end, thread,         block,  threads, gridDim.x * gridDim.y * gridDim.z,
                                    flag};
}
/// The body of the kernel without a twin.
struct Nothing {
  DIST_HD void operator()(std::size_t) const {}
};

template <auto... kernels>
struct Kernels {};
using All =
    Kernels<&dist::cuda::detail::for_each_kernel<Saxpy>, &dist::cuda::detail::reduce_kernel<double, Total, SquareOf>,
            &dist::cuda::detail::finish_kernel<double, double, Total>, &note_arguments>;

}  // namespace DIST_SMOKE_SIDE
}  // namespace smoke
