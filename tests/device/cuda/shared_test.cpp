#include <dist/device/cuda/shared.cuh>

#include <doctest/doctest.h>

#include <cstddef>

#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/stream.hpp>
#include <support/fake_cuda/machines.hpp>

namespace {

/// Each block of 32 threads writes the sum of its numbers twice, from two shared arrays.
__global__ void sum_in_blocks(int* sums) {
  int* const numbers = dist::cuda::shared<int, 32, struct Numbers>();
  int* const others = dist::cuda::shared<int, 32, struct Others>();
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x + 32 * blockIdx.x);
  others[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sums[blockIdx.x] = 0;
  for (std::size_t i = 0; i < 32; ++i) sums[blockIdx.x] += numbers[i] * others[i];
}

}  // namespace

TEST_CASE("threads of a block share memory, separately for each tag") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const dist::cuda::Stream stream{0};
    const dist::cuda::DeviceBuffer there{0, 2 * sizeof(int)};
    const dist::cuda::PinnedBuffer here{2 * sizeof(int)};
    dist::cuda::launch(stream.ref(), dim3{2}, dim3{32}, &sum_in_blocks, reinterpret_cast<int*>(there.data()));
    DIST_CUDA_CHECK(
        cudaMemcpyAsync(here.data(), there.data(), here.size(), cudaMemcpyDeviceToHost, stream.ref().get()));
    stream.ref().wait();
    CHECK(reinterpret_cast<const int*>(here.data())[0] == 496);
    CHECK(reinterpret_cast<const int*>(here.data())[1] == 1520);
  }
}
