#include <dist/comm/nccl/lsa.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

#include <dist/comm/nccl/communicators.hpp>
#include <dist/comm/nccl/symmetric_memory.hpp>
#include <dist/device/cuda/device.cuh>
#include <support/fake_cuda/machine.hpp>
#include <support/fake_nccl/machine.hpp>

TEST_CASE("a kernel finds the start of a window in the memory of a rank") {
  fake_cuda::restart({});
  fake_nccl::restart();
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  const std::array<std::size_t, 1> devices{0};
  const dist::Cuda::Queues queues{devices};
  dist::nccl::Communicators alone{std::array{0}, id, 0, 1, std::chrono::seconds{5}};
  dist::nccl::SymmetricMemory memory{alone, 1, std::chrono::seconds{5}};
  std::byte* const first = memory.allocate(0, 0, 100);
  std::byte* const found = memory.allocate(0, 0, sizeof(std::byte*));
  memory.join_window(0, first, [&](ncclWindow_t window) {
    auto* const places = reinterpret_cast<std::byte**>(found);
    queues[0].for_each({0, 1}, dist::nccl::FindWindow{window, places});
    std::array<std::byte*, dist::nccl::SymmetricMemory::most_ranks> peers{};
    queues[0].copy(dist::Cuda::Span<std::byte* const>{places, 1}, std::span{peers}.first(1));
    queues[0].wait();
    return peers;
  });
  CHECK(memory.peers_of(0, first)[0] == first);
  memory.release(0, first);
  memory.release(0, found);
}

TEST_CASE("requirements of a device communicator are empty") {
  const ncclDevCommRequirements none = dist::nccl::no_requirements();
  CHECK(!none.lsaMultimem);
  CHECK(none.lsaBarrierCount == 0);
}
