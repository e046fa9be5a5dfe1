#include <dist/device/cuda/peers.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

#include <support/fake_cuda/machine.hpp>

TEST_CASE("GPUs are given access to each other where the machine lets them") {
  fake_cuda::Options machine;
  machine.devices = 3;
  fake_cuda::restart(machine);
  const std::array<std::size_t, 4> devices{0, 2, 0, 2};
  dist::cuda::enable_peer_access(devices);
  dist::cuda::enable_peer_access(devices);  // again does not hurt
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
