#include "gpu.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <support/fake_cuda/machines.hpp>
#include <support/sanitizers.hpp>
#include <support/stderr_of.hpp>

using fake_cuda::every_schedule;
using testing::stderr_of;

namespace {

struct Index {
  unsigned thread[3], block[3], block_dim[3], grid_dim[3];
};

__global__ void write_indices(Index* all) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  all[block * blockDim.x * blockDim.y * blockDim.z + thread] = {{threadIdx.x, threadIdx.y, threadIdx.z},
                                                                {blockIdx.x, blockIdx.y, blockIdx.z},
                                                                {blockDim.x, blockDim.y, blockDim.z},
                                                                {gridDim.x, gridDim.y, gridDim.z}};
}

int* block_memory() {
  static const char key = 0;
  return static_cast<int*>(fake_cuda::shared_in_block(&key, 64 * sizeof(int)));
}

/// Reverses the elements of each block of 64 through shared memory.
__global__ void reverse(int* values, bool synchronizes) {
  int* const shared = block_memory();
  int* const mine = values + std::size_t{blockIdx.x} * 64;
  shared[threadIdx.x] = mine[threadIdx.x];
  if (synchronizes) __syncthreads();
  mine[threadIdx.x] = shared[63 - threadIdx.x];
}

/// Stores the initial contents of the block's shared memory, then overwrites them.
__global__ void look_at_shared(int* seen) {
  int* const shared = block_memory();
  if (threadIdx.x == 0) seen[blockIdx.x] = shared[5];
  shared[5] = 1;
}

__global__ void add_across_warps(int* values) {
  int sum = values[threadIdx.x];
  for (unsigned delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(~0U, sum, delta);
  sum = __shfl_sync(~0U, sum, 0);
  __syncwarp();
  values[threadIdx.x] = __shfl_xor_sync(~0U, sum + static_cast<int>(threadIdx.x % 2), 1);
}

__global__ void half_a_barrier(int* values) {
  if (threadIdx.x < 16) __syncthreads();
  values[threadIdx.x] = 1;
}
__global__ void half_a_shuffle(int* values) {
  if (threadIdx.x < 16) values[threadIdx.x] = __shfl_sync(~0U, 1, 0);
}

struct Holder {
  int count;
  const void* address;
};
__global__ void take(Holder) {}
__global__ void nothing() {}

template <class T>
T* uploaded(const std::vector<T>& values, cudaStream_t stream) {
  T* const host = gpu::pinned<T>(values.size());
  std::copy(values.begin(), values.end(), host);
  T* const memory = gpu::memory<T>(values.size());
  gpu::copy(memory, host, values.size(), stream);
  return memory;
}
template <class T>
std::vector<T> downloaded(const T* memory, std::size_t count, cudaStream_t stream) {
  T* const host = gpu::pinned<T>(count);
  gpu::copy(host, memory, count, stream);
  gpu::synchronize(stream);
  return {host, host + count};
}

std::vector<int> numbers(std::size_t count) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i);
  return values;
}

}  // namespace

TEST_CASE("every thread of every block has its index and the dimensions") {
  for (const fake_cuda::Options& machine : every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const cudaStream_t stream = gpu::stream();
    const dim3 grid{2, 3, 2}, block{4, 2, 3};
    Index* const memory = gpu::memory<Index>(12 * 24);
    gpu::launch(stream, grid, block, &write_indices, memory);
    const std::vector<Index> all = downloaded(memory, 12 * 24, stream);
    for (unsigned i = 0; i < all.size(); ++i) {
      const unsigned b = i / 24, t = i % 24;
      const Index expected{{t % 4, t / 4 % 2, t / 8}, {b % 2, b / 2 % 3, b / 6}, {4, 2, 3}, {2, 3, 2}};
      CHECK(std::memcmp(&all[i], &expected, sizeof expected) == 0);
    }
  }
}

TEST_CASE("threads of a block synchronize at barriers and share memory") {
  for (fake_cuda::Options machine : every_schedule())
    for (const bool separate : {false, true}) {
      CAPTURE(fake_cuda::to_string(machine));
      machine.separate_threads = separate;
      fake_cuda::restart(machine);
      const cudaStream_t stream = gpu::stream();
      int* const values = uploaded(numbers(128), stream);
      gpu::launch(stream, dim3{2}, dim3{64}, &reverse, values, true);
      const std::vector<int> turned = downloaded(values, 128, stream);
      for (int i = 0; i < 128; ++i) CHECK(turned[static_cast<std::size_t>(i)] == i / 64 * 64 + 63 - i % 64);
    }
}

TEST_CASE("a missing barrier causes wrong values, and a thread sanitizer report in every schedule") {
  for (fake_cuda::Options machine : every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    machine.separate_threads = true;
    const auto ending = stderr_of([&] {
      fake_cuda::restart(machine);
      const cudaStream_t stream = gpu::stream();
      int* const values = uploaded(numbers(64), stream);
      gpu::launch(stream, dim3{1}, dim3{64}, &reverse, values, false);
      const std::vector<int> turned = downloaded(values, 64, stream);
      for (int i = 0; i < 64; ++i)
        if (turned[static_cast<std::size_t>(i)] != 63 - i) std::fputs("wrong value\n", stderr);
    });
    CHECK(ending.says("wrong value"));
#ifdef DIST_TEST_THREAD_SANITIZER
    CHECK(ending.says("WARNING: ThreadSanitizer: data race"));
    CHECK(ending.says("reverse"));
#endif
  }
}

TEST_CASE("shared memory of a block contains no data of another block") {
  fake_cuda::restart({});
  const cudaStream_t stream = gpu::stream();
  int* const seen = gpu::memory<int>(3);
  gpu::launch(stream, dim3{3}, dim3{64}, &look_at_shared, seen);
  const int unset = static_cast<int>(0xCDCDCDCD);
  CHECK(downloaded(seen, 3, stream) == std::vector<int>{unset, unset, unset});
}

TEST_CASE("shuffles exchange values within warps") {
  for (const fake_cuda::Options& machine : every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const cudaStream_t stream = gpu::stream();
    int* const values = uploaded(numbers(64), stream);
    gpu::launch(stream, dim3{1}, dim3{64}, &add_across_warps, values);
    const std::vector<int> sums = downloaded(values, 64, stream);
    for (std::size_t i = 0; i < 64; ++i) CHECK(sums[i] == (i < 32 ? 496 : 1520) + static_cast<int>(1 - i % 2));
  }
}

TEST_CASE("a barrier that some threads do not reach is a deadlock") {
  fake_cuda::restart({});
  const cudaStream_t stream = gpu::stream();
  int* const values = gpu::memory<int>(64);
  const auto barrier = stderr_of([&] { gpu::launch(stream, dim3{1}, dim3{32}, &half_a_barrier, values); });
  CHECK(barrier.says("deadlock in a block of 'kernel (int"));
  CHECK(barrier.says("' of stream 1 on GPU 0: 16 of 32 threads wait at a barrier"));
  const auto shuffle = stderr_of([&] { gpu::launch(stream, dim3{1}, dim3{32}, &half_a_shuffle, values); });
  CHECK(shuffle.says("16 of 32 threads wait at a barrier or shuffle that the others never reach"));
}

TEST_CASE("kernels reject host addresses as arguments") {
  fake_cuda::restart({});
  const cudaStream_t stream = gpu::stream();
  const auto taken = [&](const void* address) {
    return stderr_of([&] { gpu::launch(stream, dim3{1}, dim3{1}, &take, Holder{3, address}); });
  };
#if !defined(__clang__)  // clang cannot distinguish padding from addresses
  const int on_stack = 0;
  CHECK(taken(&on_stack).says("word 1 of the arguments of 'kernel ("));
  CHECK(taken(&on_stack).says("is an address of the host's memory, which no GPU reaches"));
  CHECK(taken("text").says("is an address of the host's memory"));
  int* const freed = gpu::memory<int>(4);
  REQUIRE(cudaFree(freed) == cudaSuccess);
  CHECK(taken(freed + 1).says("is the address of freed memory of GPU 0, byte 4 of 16"));
#endif
  CHECK_FALSE(taken(nullptr).aborted);
  void* const unmapped = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(munmap(unmapped, 4096) == 0);
  CHECK_FALSE(taken(unmapped).aborted);  // an ordinary number
  int* const memory = gpu::memory<int>(64);
  CHECK_FALSE(taken(memory + 64).aborted);
  CHECK_FALSE(taken(gpu::mapped<int>(1)).aborted);
}

TEST_CASE("launches beyond hardware limits or on another GPU's stream are rejected") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  const cudaStream_t stream = gpu::stream(0);
  for (const dim3 block : {dim3{0}, dim3{1025}, dim3{33, 32}, dim3{1, 1, 65}})
    CHECK(gpu::try_launch(stream, dim3{1}, block, &nothing) == cudaErrorInvalidConfiguration);
  for (const dim3 grid : {dim3{0}, dim3{1, 65536}, dim3{1, 1, 65536}, dim3{0x80000000U}})
    CHECK(gpu::try_launch(stream, grid, dim3{1}, &nothing) == cudaErrorInvalidConfiguration);
  CHECK(gpu::try_launch(stream, dim3{1}, dim3{1024}, &nothing) == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK(gpu::try_launch(stream, dim3{1}, dim3{1}, &nothing) == cudaErrorInvalidResourceHandle);
  CHECK(stderr_of([&] {
          static_cast<void>(gpu::try_launch(nullptr, dim3{1}, dim3{1}, &nothing));
        }).says("cudaLaunchKernelEx on the legacy stream"));
}
