// Memory that NCCL windows share with other ranks, and the errors of failing calls.
#include <dist/comm/nccl/symmetric_memory.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <dist/comm/nccl/nccl_symmetric_all_reduce.cuh>
#include <dist/core/shape.hpp>
#include <dist/device/cuda/memory.hpp>
#include <dist/strategy/mirrored.hpp>
#include <support/descend.hpp>
#include <support/fake_cuda/machines.hpp>
#include <support/fake_nccl/machine.hpp>
#include <support/what_throws.hpp>

#include "failing_calls.hpp"

using dist::nccl::Communicators;
using dist::nccl::SymmetricMemory;
using failing_calls::failure_of;
using failing_calls::holds;
using failing_calls::start_gpus;
using std::chrono::milliseconds;

namespace {

using Strategy = dist::Mirrored<dist::NcclSymmetricAllReduce>;

/// A communicator of one rank.
struct Alone {
  Alone() {
    ncclUniqueId id{};
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    ranks.emplace(std::array{1}, id, 0, 1, milliseconds{5'000});
  }
  std::optional<Communicators> ranks;
};

std::array<std::byte*, SymmetricMemory::most_ranks> nowhere(ncclWindow_t) { return {}; }

/// Updates two variables twice each. The second one reuses the memory of the first.
void train(Strategy& strategy) {
  const auto slopes = strategy.buffer<float>(dist::Shape{64});
  for (int variable = 0; variable < 2; ++variable) {
    const auto weights = strategy.buffer<float>(dist::Shape{64});
    for (int step = 0; step < 2; ++step)
      strategy.run([&](auto& replica) {
        replica.reduce_and_apply(dist::sum, slopes.component(replica), weights.component(replica), support::Descend{});
        replica.queue().wait();
      });
  }
}

}  // namespace

TEST_CASE("operands are found in their allocation, and windows are numbered in order of creation") {
  start_gpus();
  Alone one;
  {
    SymmetricMemory memory{*one.ranks, 1, milliseconds{5'000}};
    std::byte* const a = memory.allocate(0, 1, 100);
    std::byte* const b = memory.allocate(0, 1, 200);
    CHECK(fake_cuda::live().device_allocations == 2);
    CHECK(memory.place_of(0, a + 99).allocation_bytes == 100);
    CHECK(memory.place_of(0, a + 99).offset == 99);
    CHECK(memory.place_of(0, a + 99).window == 0);
    CHECK(memory.place_of(0, a + 100).allocation_bytes == 0);
    CHECK(memory.place_of(0, nullptr).allocation_bytes == 0);
    const auto at_b = [&](ncclWindow_t window) {
      CHECK(window != nullptr);
      return std::array<std::byte*, SymmetricMemory::most_ranks>{b};
    };
    memory.join_window(0, b + 7, at_b);
    memory.join_window(0, b + 9, nowhere);
    CHECK(memory.place_of(0, b).window == 1);
    CHECK(memory.peers_of(0, b + 50)[0] == b);
    memory.join_window(0, a, nowhere);
    CHECK(memory.place_of(0, a).window == 2);
    memory.release(0, b);
    CHECK(fake_nccl::live_windows() == 1);
    CHECK(memory.place_of(0, b).allocation_bytes == 0);
    memory.leave_ranks();
    CHECK(fake_nccl::live_windows() == 0);
    CHECK(memory.place_of(0, a).window == 0);
    one.ranks.reset();
    memory.release(0, a);
  }
  CHECK(fake_cuda::live().device_allocations == 0);
  CHECK(fake_nccl::live_communicators() == 0);
}

TEST_CASE("a full GPU throws OutOfMemory, and other failures throw NcclError") {
  start_gpus({.memory = 1000});
  Alone one;
  const auto memory = std::make_shared<SymmetricMemory>(*one.ranks, 1, milliseconds{5'000});
  const std::string said =
      support::what_throws<dist::OutOfMemory>([&] { static_cast<void>(memory->allocate(0, 1, 1001)); });
  CHECK(holds(
      said, "An allocation on GPU 1 of 1001 bytes failed (NCCL refuses the allocation; 1000 of 1000 bytes are free)"));
  fake_nccl::fail_call("ncclMemAlloc", ncclSystemError);
  const std::string refused =
      support::what_throws<dist::NcclError>([&] { static_cast<void>(memory->allocate(0, 1, 10)); });
  CHECK(holds(refused, "NCCL refuses 'ncclMemAlloc(&first, bytes)' of GPU 1"));
  CHECK(fake_cuda::live().device_allocations == 0);
}

TEST_CASE("deregistration of a window waits until the rank has finished earlier work") {
  start_gpus({.polls = 3});
  Alone one;
  SymmetricMemory memory{*one.ranks, 1, milliseconds{5'000}};
  std::byte* const first = memory.allocate(0, 1, 100);
  memory.join_window(0, first, nowhere);
  const dist::cuda::Stream stream{1};
  const dist::cuda::DeviceBuffer sum{1, 4};
  one.ranks->call(0, "ncclAllReduce", milliseconds{5'000}, [&](ncclComm_t comm) {
    CHECK(ncclAllReduce(sum.data(), sum.data(), 1, ncclInt32, ncclSum, comm, stream.ref().get()) == ncclInProgress);
    return ncclSuccess;  // so that nothing polls until the work is done
  });
  memory.release(0, first);  // the fake refuses calls while the rank is in progress
  CHECK(fake_nccl::live_windows() == 0);
  CHECK(fake_nccl::calls("ncclCommAbort") == 0);
  stream.ref().wait();
}

// The fake rejects freeing window memory while kernels use it, even if the rank is aborted.
TEST_CASE("every failure of every window call is an NcclError that names it, and nothing is leaked") {
  constexpr std::array calls{"ncclMemAlloc",         "ncclDevCommCreate",      "ncclDevCommDestroy",
                             "ncclAllReduce",        "ncclCommWindowRegister", "ncclCommWindowDeregister",
                             "ncclCommGetAsyncError"};
  constexpr std::array codes{ncclSystemError, ncclInternalError, ncclInvalidArgument, ncclRemoteError};
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy, fake_cuda::Schedule::random})
    for (const std::string_view function : calls)
      for (const int nth : {1, 2, 3, 5, 9}) {
        const int polls = nth % 2 == 0 ? 0 : 2;
        const ncclResult_t code = codes[(static_cast<std::size_t>(nth) + function.size()) % codes.size()];
        CAPTURE(function);
        CAPTURE(nth);
        CAPTURE(polls);
        start_gpus({.polls = polls, .schedule = schedule});
        fake_nccl::fail_call(function, code, nth);
        const auto failure = failure_of([] {
          Strategy strategy{2};
          train(strategy);
          // The destructors of a variable and a strategy cannot report failures.
          if (fake_nccl::calls("ncclCommAbort") != 0 && fake_nccl::calls("ncclCommWindowDeregister") == 0)
            throw std::logic_error("aborted without a failure");
        });
        const bool came = fake_nccl::calls(function) >= nth;
        const bool in_destructor = function == "ncclCommWindowDeregister" || function == "ncclCommGetAsyncError";
        if (!in_destructor) CHECK(failure.has_value() == came);
        if (failure) {
          CHECK(failure->code() == code);
          const std::string text = failure->what();
          CAPTURE(text);
          CHECK(holds(text, "the test asked for it"));
          CHECK(holds(text, function));
          CHECK(holds(text, "GPU "));
        }
        CHECK(fake_nccl::live_communicators() == 0);
        CHECK(fake_nccl::live_windows() == 0);
        CHECK(fake_cuda::live() == fake_cuda::Live{});
      }
}
