#include <dist/device/cuda/device.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>

#include <dist/comm/cuda/policies.cuh>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>
#include <support/fake_cuda/machine.hpp>

TEST_CASE("GPUs get access to each other where the machine supports it") {
  fake_cuda::Options machine;
  machine.devices = 3;
  fake_cuda::restart(machine);
  const std::array<std::size_t, 4> devices{0, 2, 0, 2};
  dist::cuda::enable_peer_access(devices);
  dist::cuda::enable_peer_access(devices);  // a second call is harmless
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK(cudaDeviceEnablePeerAccess(2, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  CHECK(dist::cuda::reaches(0, 1));
  CHECK(dist::cuda::reaches(1, 1));

  machine.peer_access = false;
  fake_cuda::restart(machine);
  CHECK_NOTHROW(dist::cuda::enable_peer_access(devices));
  CHECK_FALSE(dist::cuda::reaches(0, 1));
  fake_cuda::fail_call("cudaDeviceCanAccessPeer", cudaErrorLaunchFailure);
  CHECK_THROWS_AS(dist::cuda::enable_peer_access(devices), dist::CudaError);
}

TEST_CASE("direct reductions need GPUs with peer access, or a single GPU") {
  fake_cuda::Options machine;
  machine.devices = 2;
  machine.peer_access = false;
  fake_cuda::restart(machine);
  using Direct = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;
  CHECK_THROWS_WITH_AS(Direct{2}, doctest::Contains("Kernels of GPU 0 cannot access the memory of GPU 1"),
                       dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(Direct{2}, doctest::Contains("Mirrored<NcclAllReduce>"), dist::InvalidArgument);
  using ToOne = dist::Mirrored<dist::ReductionToOneDevice, dist::Cuda>;
  CHECK_THROWS_AS(ToOne{2}, dist::InvalidArgument);
  using Central = dist::CentralStorage<dist::Cpu, dist::Cuda>;
  CHECK_THROWS_AS(Central{2}, dist::InvalidArgument);
  machine.devices = 1;
  fake_cuda::restart(machine);
  Direct strategy{2};
  const auto ones = strategy.buffer<float>(dist::Shape{4}, "ones");
  strategy.run([&](auto& replica) {
    replica.queue().fill(ones.component(replica), 1.0F);
    replica.all_reduce(dist::sum, ones.component(replica));
  });
  std::array<float, 4> sums{};
  strategy.queues()[0].copy(ones.component(strategy.scope(), 0), std::span<float>{sums});
  strategy.queues()[0].wait();
  CHECK(sums == std::array<float, 4>{2, 2, 2, 2});
}
