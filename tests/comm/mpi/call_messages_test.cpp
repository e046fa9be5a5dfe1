// ranks: 2 3 4
#include <dist/comm/mpi/call_messages.hpp>

#include <cstddef>

#include <doctest/doctest.h>
#include <support/rank_in.hpp>

using dist::detail::CallAgreement;
using dist::mpi::detail::CallMessages;

namespace {

constexpr int tag = 5;

struct Member {
  CallAgreement meeting{support::rank_in(MPI_COMM_WORLD), support::size_of(MPI_COMM_WORLD)};
  CallMessages messages{MPI_COMM_WORLD, tag, meeting};

  CallAgreement::State meet(const dist::CollectiveCall& call) {
    meeting.begin(call);
    do {
      messages.receive();
      meeting.advance([&](std::size_t partner, const CallAgreement::Message& message) {
        while (!messages.are_sent()) continue;
        messages.send(partner, message);
      });
    } while (meeting.is_waiting() || !messages.are_sent());
    const CallAgreement::State state = meeting.state();
    meeting.end();
    return state;
  }
};

}  // namespace

TEST_CASE("members meet many times, and detect different calls") {
  Member member;
  for (std::size_t step = 0; step < 200; ++step) {
    const bool differs = step % 50 == 49 && support::rank_in(MPI_COMM_WORLD) == 1;
    CHECK(member.meet({.operation = "all_reduce", .elements = differs ? 1 : step}) ==
          (step % 50 == 49 ? CallAgreement::State::different : CallAgreement::State::met));
  }
  CHECK(member.messages.cancel_receives());
}

TEST_CASE("a pending receive is cancelled, and takes no later message") {
  {
    Member early;
    early.meeting.begin({.operation = "all_reduce"});
    early.meeting.advance([](std::size_t, const CallAgreement::Message&) {});
    early.messages.receive();
    CHECK(early.messages.cancel_receives());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  Member member;
  CHECK(member.meet({.operation = "barrier"}) == CallAgreement::State::met);
}
