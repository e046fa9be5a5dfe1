// Replicas handle failures of NCCL, GPUs and other replicas: they throw typed errors in time and leak nothing.
#include <dist/comm/nccl/communicators.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <dist/context/subgroup.hpp>
#include <dist/core/shape.hpp>
#include <dist/strategy/mirrored.hpp>
#include <support/descend.hpp>
#include <support/fake_cuda/handles.hpp>
#include <support/fake_cuda/machines.hpp>
#include <support/fake_nccl/machine.hpp>
#include <support/what_throws.hpp>

#include "failing_calls.hpp"

using failing_calls::failure_of;
using failing_calls::holds;
using failing_calls::start_gpus;
using std::chrono::milliseconds;

namespace {

using Strategy = dist::Mirrored<dist::NcclAllReduce>;

/// Makes all NCCL calls of replicas. 64 elements divide equally between two replicas, 40 do not.
void train(Strategy& strategy) {
  const auto values = strategy.buffer<float>(dist::Shape{64});
  const auto weights = strategy.buffer<float>(dist::Shape{64});
  strategy.run([&](auto& replica) {
    const auto mine = values.component(replica);
    const auto weight = weights.component(replica);
    replica.queue().fill(mine, 1.0F);
    replica.queue().fill(weight, 8.0F);
    for (const std::size_t count : {64U, 40U})
      replica.reduce_and_apply(dist::sum, mine.first(count), weight.first(count), support::Descend{});
    replica.all_reduce(dist::sum, mine);
    replica.broadcast(weight, 1);
    const std::size_t other = 1 - replica.replica_id().index();
    replica.neighbor_exchange({{other, mine.first(3)}, {other, mine.subspan(3, 2)}},
                              {{other, weight.first(3)}, {other, weight.subspan(3, 2)}});
    replica.queue().wait();
  });
}

}  // namespace

TEST_CASE("replicas train while NCCL is in progress for a while after every call") {
  for (const int polls : {0, 1, 5})
    for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy, fake_cuda::Schedule::random}) {
      start_gpus({.polls = polls, .schedule = schedule});
      {
        Strategy strategy{2};
        train(strategy);
        CHECK(fake_nccl::live_communicators() == 2);
      }
      CHECK(fake_nccl::live_communicators() == 0);
      CHECK(fake_nccl::calls("ncclCommFinalize") == 2);
      CHECK(fake_nccl::calls("ncclCommDestroy") == 2);
      CHECK(fake_nccl::calls("ncclCommAbort") == 0);
    }
}

TEST_CASE("every failure of every call is an NcclError that names it, and no communicator is leaked") {
  constexpr std::array calls{
      "ncclGetVersion",        "ncclGetUniqueId",  "ncclGroupStart", "ncclGroupEnd",      "ncclCommInitRankConfig",
      "ncclCommGetAsyncError", "ncclAllReduce",    "ncclReduce",     "ncclReduceScatter", "ncclAllGather",
      "ncclBroadcast",         "ncclCommFinalize", "ncclSend",       "ncclRecv"};
  constexpr std::array codes{ncclUnhandledCudaError, ncclSystemError,  ncclInternalError,
                             ncclInvalidArgument,    ncclInvalidUsage, ncclRemoteError};
  for (const int polls : {0, 2})
    for (const std::string_view function : calls)
      for (int nth = 1, last = 30; nth <= last; ++nth) {  // there may be more queries of a communicator, all alike
        const ncclResult_t code = codes[(static_cast<std::size_t>(nth) + function.size()) % codes.size()];
        CAPTURE(function);
        CAPTURE(nth);
        CAPTURE(polls);
        start_gpus({.polls = polls});
        fake_nccl::fail_call(function, code, nth);
        const auto failure = failure_of([] {
          Strategy strategy{2};
          train(strategy);
          // The destructor cannot report failures.
          if (fake_nccl::calls("ncclCommAbort") != 0) throw std::logic_error("aborted without a failure");
        });
        const bool came = fake_nccl::calls(function) >= nth;
        if (!came) last = 0;  // there are fewer calls
        const bool in_destructor = function == "ncclCommFinalize" || (function == "ncclCommGetAsyncError" && !failure);
        CHECK(failure.has_value() == (came && !in_destructor));
        if (failure) {
          CHECK(failure->code() == code);
          const std::string text = failure->what();
          CAPTURE(text);
          CHECK(holds(text, "the test asked for it"));
          const bool in_group = function.starts_with("ncclGroup");
          CHECK((in_group || holds(text, function)));
          if (function != "ncclGetVersion" && function != "ncclGetUniqueId") CHECK(holds(text, "on GPU "));
        }
        CHECK(fake_nccl::live_communicators() == 0);
        CHECK(fake_nccl::open_groups() == 0);
      }
}

TEST_CASE("a failure that NCCL reports later ends the next wait and disables the strategy") {
  for (const int nth : {1, 3}) {
    start_gpus();
    Strategy strategy{2};
    fake_nccl::fail_later(ncclRemoteError, nth);
    const auto failure = failure_of([&] { train(strategy); });
    REQUIRE(failure);
    CHECK(failure->code() == ncclRemoteError);
    CHECK(holds(failure->what(), "then start all of them again"));
    CHECK(fake_nccl::live_communicators() == 0);
    const auto again = failure_of([&] { train(strategy); });
    REQUIRE(again);
    CHECK(std::string(again->what()) == failure->what());
  }
  start_gpus();
  Strategy strategy{2};
  train(strategy);
}

TEST_CASE("a GPU that does not arrive makes its peers time out, and nothing waits for it afterwards") {
  start_gpus();
  bool may_end = false;
  {
    Strategy strategy{dist::MirroredOptions{.replicas = 2, .communication = {.timeout = milliseconds{200}}}};
    const auto values = strategy.buffer<float>(dist::Shape{64});
    const std::string late = support::what_throws<dist::ReplicaError>([&] {
      strategy.run([&](auto& replica) {
        if (replica.local_index() == 1)
          fake_cuda::put_for_library(
              replica.queue().stream().get(), "a kernel that waits", [] {}, [&] { return may_end; });
        replica.all_reduce(dist::sum, values.component(replica));
        if (replica.local_index() == 0) replica.queue().wait();
      });
    });
    CHECK(holds(late, "queue 0 of GPU 0"));
    CHECK(fake_nccl::live_communicators() == 0);
    CHECK(fake_nccl::calls("ncclCommAbort") == 2);
  }
  may_end = true;
}

TEST_CASE("joining a communicator times out if other ranks do not join") {
  start_gpus();
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  const std::array<int, 1> here{1};
  const std::string late = support::what_throws<dist::DeadlineExceeded>([&] {
    const dist::nccl::Communicators alone{here, id, 1, 2, milliseconds{30}};
  });
  CHECK(holds(late, "'ncclCommInitRankConfig' of replica 1 on GPU 1"));
  CHECK(fake_nccl::live_communicators() == 0);
}

TEST_CASE("the loss of a process with other ranks ends the wait for them at once with an error that names it") {
  start_gpus();
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  dist::PeerHealth health;
  health.lose({.rank = 1, .host = "there", .why = "its process 4711 ended"});
  const std::array<int, 1> here{1};
  const std::string lost = support::what_throws<dist::Unavailable>(
      [&] { const dist::nccl::Communicators alone{here, id, 1, 2, milliseconds{20'000}, &health}; });
  CHECK(holds(lost, "orker 1 on host there is gone (its process 4711 ended)"));
  CHECK(fake_nccl::live_communicators() == 0);
}

TEST_CASE("an abort waits for kernels that use a rank and keeps the rank if they do not end") {
  for (const bool do_end : {true, false}) {
    start_gpus({.polls = 2});
    struct Kernels {
      bool do_end;
      int ranks_before = 0;
    } kernels{do_end};
    ncclUniqueId id{};
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    dist::nccl::Communicators alone{std::array{1}, id, 0, 1, milliseconds{1'000}};
    const auto await = [](void* self) noexcept {
      auto& of = *static_cast<Kernels*>(self);
      of.ranks_before = static_cast<int>(fake_nccl::live_communicators());
      return of.do_end;
    };
    alone.set_users({&kernels, [](ncclComm_t rank) { return ncclCommRevoke(rank, NCCL_REVOKE_DEFAULT); }, await});
    bool is_used = false;
    alone.use(0, [&] { is_used = true; });
    CHECK(is_used);
    alone.cancel(std::make_exception_ptr(std::runtime_error("something failed")));
    CHECK(kernels.ranks_before == 1);
    CHECK(fake_nccl::calls("ncclCommRevoke") == 1);
    CHECK(fake_nccl::calls("ncclCommAbort") == (do_end ? 1 : 0));
    CHECK(support::what_throws<std::runtime_error>(
              [&] { alone.use(0, [] { FAIL("a kernel is put after the end"); }); }) == "something failed");
  }
  fake_nccl::restart();
}
