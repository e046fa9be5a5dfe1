// State that strategies keep for NCCL. tests/multi_worker/nccl_test.cpp tests the state of several processes.
#include <dist/comm/nccl/state.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <dist/strategy/mirrored.hpp>
#include <support/fake_cuda/machine.hpp>
#include <support/fake_nccl/machine.hpp>
#include <support/what_throws.hpp>

namespace {

using Strategy = dist::Mirrored<dist::NcclAllReduce>;

void start_gpus(const fake_nccl::Options& library = {}) {
  fake_cuda::restart({.devices = 2});
  fake_nccl::restart(library);
}

}  // namespace

TEST_CASE("scratch memory of a replica grows and is freed with the ranks") {
  start_gpus();
  {
    const std::array<std::size_t, 2> devices{0, 1};
    const dist::Cuda::Queues queues{std::span<const std::size_t>{devices}};
    const std::size_t before = fake_cuda::live().device_allocations;
    const dist::nccl::State state{queues, 2};
    CHECK(state.size() == 2);
    CHECK(state.is_one_host());
    std::byte* const first = state.scratch(1, 100);
    CHECK(state.scratch(1, 50) == first);
    CHECK(fake_cuda::live().device_allocations == before + 1);
    static_cast<void>(state.scratch(1, 200));
    static_cast<void>(state.scratch(0, 1));
    CHECK(fake_cuda::live().device_allocations == before + 2);
  }
  CHECK(fake_cuda::live() == fake_cuda::Live{});
  CHECK(fake_nccl::live_communicators() == 0);
}

TEST_CASE("replicas that share a GPU throw an error that names the other policy (spec H05)") {
  start_gpus();
  const std::string shared = support::what_throws<dist::InvalidArgument>([] { Strategy strategy{3}; });
  CHECK(shared.find("Replicas 0 and 2 share /gpu:0") != std::string::npos);
  CHECK(shared.find("Mirrored<DirectAllReduce, Cuda>") != std::string::npos);
  CHECK(fake_nccl::calls("ncclCommInitRankConfig") == 0);
}

TEST_CASE("a strategy requires the libnccl version of the header") {
  start_gpus({.version = 21805});
  CHECK_THROWS_WITH_AS(Strategy{2}, doctest::Contains("libnccl is 2.18.5"), dist::NcclError);
  start_gpus();
  CHECK_NOTHROW(Strategy{2});
}
