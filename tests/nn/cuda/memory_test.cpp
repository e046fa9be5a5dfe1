#include <dist/nn/cuda/memory.cuh>

#include <cstddef>
#include <utility>

#include <dist/device/cuda/device.cuh>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

namespace cudnn = dist::nn::cuda;

namespace {

struct Write {
  float* to;
  DIST_HD void operator()(std::size_t i) const { to[i] = 1; }
};

}  // namespace

TEST_CASE("memory is freed after the enqueued work is done, and is replaced by larger memory") {
  // The fake runs nothing until the host waits, and rejects freeing memory in use.
  fake_cuda::restart({.schedule = fake_cuda::Schedule::lazy});
  const std::size_t device = 0;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const dist::Cuda::Queue queue = queues[0];
  const std::size_t before = fake_cuda::live().device_allocations;
  {
    cudnn::Memory<float> memory;
    CHECK(memory.data() == nullptr);
    for (const std::size_t count : {std::size_t{100}, std::size_t{1000}}) {
      memory = cudnn::Memory<float>{queue, count};
      queue.for_each({0, count}, Write{memory.data()});
    }
    cudnn::Memory<float> moved{std::move(memory)};
    CHECK(moved.data() != nullptr);
    CHECK(fake_cuda::live().device_allocations == before + 1);
  }
  CHECK(fake_cuda::live().device_allocations == before);
  CHECK_THROWS_AS((cudnn::Memory<float>{queue, std::size_t{1} << 40}), dist::OutOfMemory);
}

TEST_CASE("reserved memory grows and never shrinks") {
  fake_cuda::restart({.schedule = fake_cuda::Schedule::lazy});
  const std::size_t device = 0;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const dist::Cuda::Queue queue = queues[0];
  const std::size_t before = fake_cuda::live().device_allocations;
  cudnn::Memory<float> memory;
  memory.reserve(queue, 0);
  CHECK(memory.data() == nullptr);
  memory.reserve(queue, 100);
  float* const first = memory.data();
  queue.for_each({0, 100}, Write{first});
  memory.reserve(queue, 50);
  memory.reserve(queue, 100);
  CHECK(memory.data() == first);
  memory.reserve(queue, 1000);
  queue.for_each({0, 1000}, Write{memory.data()});
  CHECK(fake_cuda::live().device_allocations == before + 1);
  CHECK_THROWS_AS(memory.reserve(queue, std::size_t{1} << 40), dist::OutOfMemory);
  CHECK(memory.data() == nullptr);
  memory.reserve(queue, 100);
  CHECK(memory.data() != nullptr);
}

TEST_CASE("memory is freed whatever error the wait throws") {
  fake_cuda::restart({});
  const std::size_t device = 0;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const std::size_t before = fake_cuda::live().device_allocations;
  for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorInvalidValue}) {
    CAPTURE(error);
    {
      const cudnn::Memory<float> memory{queues[0], 100};
      fake_cuda::fail_call("cudaStreamQuery", error);
    }
    CHECK(fake_cuda::live().device_allocations == before);
  }
}
