#include <dist/device/cuda/launch.cuh>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

#include <dist/device/cuda/buffer.hpp>
#include <support/fake_cuda/machines.hpp>

using dist::cuda::DeviceBuffer;
using dist::cuda::PinnedBuffer;
using dist::cuda::Stream;

namespace {

__global__ void nothing() {}

struct CountTo {
  std::int64_t* visits;
  DIST_HD void operator()(std::size_t i) const { ++visits[i]; }
};
struct Square {
  DIST_HD std::int64_t operator()(std::size_t i) const { return static_cast<std::int64_t>(i * i); }
};

/// Returns the number that `put(an element on the GPU)` writes.
template <class Put>
std::int64_t result_of(const Stream& stream, Put&& put) {
  const DeviceBuffer there{0, sizeof(std::int64_t)};
  const PinnedBuffer here{sizeof(std::int64_t)};
  put(reinterpret_cast<std::int64_t*>(there.data()));
  DIST_CUDA_CHECK(cudaMemcpyAsync(here.data(), there.data(), here.size(), cudaMemcpyDeviceToHost, stream.ref().get()));
  stream.ref().wait();
  return *reinterpret_cast<const std::int64_t*>(here.data());
}

}  // namespace

TEST_CASE("every index of a range has one thread") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const Stream stream{0};
    constexpr std::size_t count = 1000;
    const DeviceBuffer there{0, count * sizeof(std::int64_t)};
    const PinnedBuffer here{count * sizeof(std::int64_t)};
    DIST_CUDA_CHECK(cudaMemsetAsync(there.data(), 0, here.size(), stream.ref().get()));
    const CountTo body{reinterpret_cast<std::int64_t*>(there.data())};
    dist::cuda::for_each(stream.ref(), {5, 5}, body);
    CHECK(fake_cuda::counts().kernels == 0);
    dist::cuda::for_each(stream.ref(), {3, 900}, body);
    dist::cuda::for_each(stream.ref(), {899, 1000}, body);
    DIST_CUDA_CHECK(
        cudaMemcpyAsync(here.data(), there.data(), here.size(), cudaMemcpyDeviceToHost, stream.ref().get()));
    stream.ref().wait();
    const auto* const visits = reinterpret_cast<const std::int64_t*>(here.data());
    for (std::size_t i = 0; i < count; ++i) CHECK(visits[i] == (i < 3 ? 0 : i == 899 ? 2 : 1));
  }
}

TEST_CASE("a reduction uses 1 to 64 blocks, without races") {
  for (fake_cuda::Options machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    for (const std::size_t count : {1U, 4096U, 4097U, 300'000U}) {
      machine.separate_threads = count == 4097U;  // detects races within the kernel
      fake_cuda::restart(machine);
      const Stream stream{0};
      const DeviceBuffer partials{0, dist::cuda::most_partials * dist::cuda::most_partial_bytes};
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += static_cast<std::int64_t>(i * i);
      CHECK(result_of(stream, [&](std::int64_t* to) {
              dist::cuda::transform_reduce(stream.ref(), dist::sum, {0, count}, Square{}, partials.data(), to);
            }) == sum);
      CHECK(fake_cuda::counts().kernels == 2);
    }
  }
}

TEST_CASE("a failed launch throws") {
  fake_cuda::restart({});
  const Stream stream{0};
  CHECK_THROWS_AS(dist::cuda::launch(stream.ref(), dim3{1}, dim3{2000}, &nothing), dist::CudaError);
  CHECK_NOTHROW(dist::cuda::launch(stream.ref(), dim3{1}, dim3{1}, &nothing));
}
