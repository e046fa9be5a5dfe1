#include <dist/device/cuda/buffer.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>

#include <support/fake_cuda/machine.hpp>
#include <support/what_throws.hpp>

using dist::cuda::DeviceBuffer;
using dist::cuda::PinnedBuffer;

TEST_CASE("buffers have a single owner, on their GPU or on the host") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  {
    DeviceBuffer a{1, 100};
    std::byte* const first = a.data();
    DeviceBuffer b = std::move(a);
    CHECK(b.data() == first);
    DeviceBuffer c{0, 10};
    c = std::move(b);
    CHECK(c.data() == first);
    PinnedBuffer p{64};
    p.data()[63] = std::byte{1};
    PinnedBuffer q = std::move(p);
    CHECK(q.size() == 64);
    CHECK(p.size() == 0);
    q = PinnedBuffer{32};
    CHECK(q.size() == 32);
    CHECK(fake_cuda::live().device_allocations == 2);
  }
  CHECK(fake_cuda::live() == fake_cuda::Live{});
}

TEST_CASE("insufficient memory throws OutOfMemory, other failures throw CUDA's error") {
  fake_cuda::Options small;
  small.memory = 1000;
  fake_cuda::restart(small);
  CHECK(support::what_throws<dist::OutOfMemory>([] {
          DeviceBuffer{0, 1001};
        })
            .find("An allocation on GPU 0 of 1001 bytes failed (the CUDA runtime refuses 'cudaMalloc(&first, bytes)', "
                  "where 1000 of 1000 bytes are free)") == 0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  fake_cuda::fail_call("cudaHostAlloc", cudaErrorMemoryAllocation);
  CHECK(support::what_throws<dist::OutOfMemory>([] {
          PinnedBuffer{8};
        }).find("An allocation in pinned host memory of 8 bytes failed") == 0);
  fake_cuda::fail_call("cudaMalloc", cudaErrorLaunchFailure);
  CHECK_THROWS_AS((DeviceBuffer{0, 8}), dist::CudaError);
}

TEST_CASE("the host and all GPUs access the same mapped host memory") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  {
    const dist::cuda::MappedBuffer memory{64};
    memory.data()[8] = std::byte{3};
    CHECK(dist::cuda::on_host(memory.on_devices() + 8) == memory.data() + 8);
    const DeviceBuffer other{1, 64};
    CHECK(dist::cuda::on_host(other.data()) == nullptr);
  }
  fake_cuda::fail_call("cudaHostGetDevicePointer", cudaErrorNotSupported);
  CHECK_THROWS_AS(dist::cuda::MappedBuffer{64}, dist::CudaError);
  CHECK(fake_cuda::live() == fake_cuda::Live{});
}
