#include <dist/device/cuda/memory.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <set>
#include <type_traits>

#include <dist/device/device.hpp>
#include <support/fake_cuda/machines.hpp>

using dist::cuda::Memory;
using dist::cuda::Stream;

static_assert(dist::ReplicaMemory<Memory>);
static_assert(dist::MemorySpace<dist::cuda::DeviceMemory>);

namespace {

fake_cuda::Options lazy(int devices) {
  fake_cuda::Options options;
  options.devices = devices;
  options.schedule = fake_cuda::Schedule::lazy;
  return options;
}

}  // namespace

TEST_CASE("replicas on one GPU have separate slices; offsets reach into them and are reused") {
  fake_cuda::restart(lazy(2));
  {
    const std::array<std::size_t, 3> devices{0, 1, 0};
    Memory memory{devices};
    const std::size_t a = memory.allocate(100);
    const std::size_t b = memory.allocate(0);
    CHECK(memory.at(0, a) != memory.at(2, a));
    CHECK(memory.at(1, a + 10) == memory.at(1, a) + 10);
    CHECK(memory.at(1, b) != memory.at(1, a));
    CHECK(fake_cuda::live().device_allocations == 6);
    memory.release(a, 100);
    CHECK(fake_cuda::live().device_allocations == 3);
    CHECK(memory.allocate(50) == a);
  }
  CHECK(fake_cuda::live() == fake_cuda::Live{});
}

TEST_CASE("a custom source allocates and frees all GPU memory, and outlives it") {
  struct Source : dist::cuda::MemorySource {
    [[nodiscard]] std::byte* allocate(std::size_t replica, int device, std::size_t bytes) override {
      CHECK(device == (replica == 1 ? 1 : 0));
      if (bytes > 500) throw dist::OutOfMemory("No memory", "the test says so", "Use less");
      const dist::cuda::SelectedDevice selected{device};
      void* first = nullptr;
      REQUIRE(cudaMalloc(&first, bytes) == cudaSuccess);
      held.insert(first);
      return static_cast<std::byte*>(first);
    }
    void release(std::size_t, std::byte* first) noexcept override {
      CHECK(held.erase(first) == 1);
      CHECK(cudaFree(first) == cudaSuccess);
    }
    std::set<void*> held;
  };
  fake_cuda::restart(lazy(2));
  const std::array<std::size_t, 3> devices{0, 1, 0};
  const auto source = std::make_shared<Source>();
  {
    Memory memory{devices, source};
    const std::size_t slice = memory.allocate(100);
    CHECK(source->held.size() == 3);
    CHECK(source->held.contains(memory.at(1, slice)));
    CHECK_THROWS_AS(static_cast<void>(memory.allocate(501)), dist::OutOfMemory);
    memory.release(slice, 100);
    CHECK(source->held.empty());
    static_cast<void>(memory.allocate(100));
  }
  CHECK(source->held.empty());
  CHECK(fake_cuda::live() == fake_cuda::Live{});
}

TEST_CASE("memory is freed after the work of all replicas") {
  fake_cuda::restart(lazy(2));
  const std::array<std::size_t, 2> devices{0, 1};
  const Stream stream{1};
  Memory memory{devices};
  const std::size_t slice = memory.allocate(100);
  REQUIRE(cudaMemcpyAsync(memory.at(0, slice), memory.at(1, slice), 100, cudaMemcpyDefault, stream.ref().get()) ==
          cudaSuccess);
  memory.release(slice, 100);  // the fake GPU rejects freeing memory in use
  CHECK(fake_cuda::live().device_allocations == 0);
  static_cast<void>(memory.allocate(10));
}

TEST_CASE("a failed allocation on a GPU leaks nothing") {
  fake_cuda::Options small = lazy(2);
  small.memory = 1000;
  fake_cuda::restart(small);
  const std::array<std::size_t, 3> devices{0, 1, 1};
  Memory memory{devices};
  CHECK_THROWS_AS(static_cast<void>(memory.allocate(600)), dist::OutOfMemory);
  CHECK(fake_cuda::live().device_allocations == 0);
  CHECK_THROWS_AS(static_cast<void>(memory.allocate(static_cast<std::size_t>(-1))), dist::OutOfMemory);
  CHECK(memory.allocate(300) == 0);
}

TEST_CASE("host memory is one zeroed region, and is freed after the work of all GPUs") {
  fake_cuda::restart(lazy(2));
  {
    const std::array<std::size_t, 2> devices{0, 1};
    const auto memory = Memory::on_host(devices);
    CHECK(memory->replicas() == 1);
    const std::size_t slice = memory->allocate(100);
    auto* const of_host = static_cast<std::byte*>(dist::cuda::on_host(memory->at(0, slice)));
    REQUIRE(of_host != nullptr);
    for (std::size_t i = 0; i < 100; ++i) CHECK(of_host[i] == std::byte{0});
    CHECK(fake_cuda::live().pinned_allocations == 1);
    CHECK(fake_cuda::live().device_allocations == 0);
    const dist::cuda::DeviceBuffer there{1, 100};
    const Stream stream{1};
    REQUIRE(cudaMemcpyAsync(memory->at(0, slice), there.data(), 100, cudaMemcpyDefault, stream.ref().get()) ==
            cudaSuccess);
    memory->release(slice, 100);  // the fake GPU rejects freeing memory in use
    CHECK(fake_cuda::live().pinned_allocations == 0);
    CHECK(memory->allocate(50) == slice);
  }
  CHECK(fake_cuda::live() == fake_cuda::Live{});
}
