// The stream and GPU of the policy. Example 13 covers algorithms that run there and compile with nvcc.
// GPUs: 2
#include <dist/device/cuda/thrust_policy.cuh>

#include <doctest/doctest.h>
#include <thrust/system/cuda/detail/util.h>

#include <array>
#include <cstddef>

#include <dist/device/cuda/device.cuh>

namespace {
struct Replica {
  dist::Cuda::Queue its;
  [[nodiscard]] dist::Cuda::Queue queue() const { return its; }
};
}  // namespace

TEST_CASE("the policy is the replica's stream on the replica's GPU") {
  constexpr std::array<std::size_t, 2> devices{0, 1};
  const dist::Cuda::Queues queues{devices};
  for (const std::size_t device : {std::size_t{1}, std::size_t{0}}) {
    const Replica replica{queues[device]};
    auto policy = dist::thrust_policy(replica);
    CHECK(thrust::cuda_cub::stream(policy) == replica.its.stream().get());
    int selected = -1;
    CHECK(cudaGetDevice(&selected) == cudaSuccess);
    CHECK(selected == static_cast<int>(device));
  }
}
