// ranks: 1 2 3
#include <dist/comm/mpi/shutdown_notice.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <utility>

#include <support/rank_in.hpp>

using dist::mpi::detail::ShutdownNotice;
using support::rank_in;
using support::size_of;
using namespace std::chrono_literals;

namespace {

int communicators = 0;  // created and not yet freed
int messages_left = 0;  // when they were freed

constexpr int tag = 7;

struct Group {
  Group() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    ++communicators;
    departures = std::make_unique<ShutdownNotice>(comm, tag);
  }
  MPI_Comm comm = MPI_COMM_NULL;
  std::unique_ptr<ShutdownNotice> departures;
};

/// Calls `look` until `holds`, for at most ten seconds.
template <class Look, class Holds>
bool comes(Look&& look, Holds&& holds) {
  for (const auto end = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < end;) {
    look();
    if (holds()) return true;
  }
  return false;
}

bool all_are_freed() {
  return comes([] { static_cast<void>(ShutdownNotice::free_left()); }, [] { return communicators == 0; });
}

}  // namespace

extern "C" {
int MPI_Comm_free(MPI_Comm* comm) {
  --communicators;
  int here = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, *comm, &here, MPI_STATUS_IGNORE);
  messages_left += here;
  return PMPI_Comm_free(comm);
}
/// The last tests leave communicators whose members have not all left by then.
int MPI_Finalize() {
  const int status = PMPI_Finalize();
  if (communicators == 0) return status;
  std::fprintf(stderr, "%d communicators are left at the end of MPI\n", communicators);
  _exit(1);
}
}

TEST_CASE("the others see the departed members, and their last steps") {
  Group group;
  const std::size_t last = size_of(MPI_COMM_WORLD) - 1;
  if (rank_in(MPI_COMM_WORLD) == last) ShutdownNotice::leave(std::move(group.departures), 5);
  if (rank_in(MPI_COMM_WORLD) != last) {
    CHECK(comes([&] { group.departures->look(); }, [&] { return group.departures->has_left(last, 5); }));
    CHECK_FALSE(group.departures->has_left(last, 4));
    CHECK(group.departures->has_left(last, 6));
    for (std::size_t member = 0; member < last; ++member) CHECK_FALSE(group.departures->has_left(member, 1000));
  }
  MPI_Barrier(MPI_COMM_WORLD);  // no other member leaves before
  if (group.departures) ShutdownNotice::leave(std::move(group.departures), 9);
  CHECK(all_are_freed());
}

TEST_CASE("a communicator is freed only when all have left") {
  Group group;
  const bool stays = rank_in(MPI_COMM_WORLD) + 1 == size_of(MPI_COMM_WORLD) && size_of(MPI_COMM_WORLD) > 1;
  if (!stays) ShutdownNotice::leave(std::move(group.departures));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int again = 0; again < 100; ++again) static_cast<void>(ShutdownNotice::free_left());
  CHECK(communicators == (size_of(MPI_COMM_WORLD) == 1 ? 0 : 1));
  MPI_Barrier(MPI_COMM_WORLD);
  if (stays) ShutdownNotice::leave(std::move(group.departures));
  CHECK(all_are_freed());
  CHECK(ShutdownNotice::free_left());
}

TEST_CASE("all messages that a member sent before it left have arrived when its departure is visible") {
  for (int round = 0; round < 200; ++round) {
    Group group;
    const std::size_t rank = rank_in(MPI_COMM_WORLD);
    const std::size_t size = size_of(MPI_COMM_WORLD);
    int mine = round;
    int theirs = -1;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const std::size_t from = (rank + 1) % size;
    MPI_Irecv(&theirs, 1, MPI_INT, static_cast<int>(from), 0, group.comm, &requests[0]);
    MPI_Isend(&mine, 1, MPI_INT, static_cast<int>((rank + size - 1) % size), 0, group.comm, &requests[1]);
    if (rank == 0) {
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      // Member 0 leaves only after it has received all.
      const auto see = [&] { group.departures->look(); };
      if (from != 0) REQUIRE(comes(see, [&] { return group.departures->has_left(from); }));
      int here = 0;
      if (from != 0) MPI_Test(&requests[0], &here, MPI_STATUS_IGNORE);
      CHECK((from == 0 || here == 1));
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    CHECK(theirs == round);
    ShutdownNotice::leave(std::move(group.departures));
  }
  CHECK(all_are_freed());
}

TEST_CASE("unreceived messages do not remain after a communicator is freed") {
  Group group;
  for (int tag_of_others = 0; tag_of_others < 3; ++tag_of_others) {
    const int mine[2] = {1, 2};
    MPI_Request request = MPI_REQUEST_NULL;
    const int next = static_cast<int>((rank_in(MPI_COMM_WORLD) + 1) % size_of(MPI_COMM_WORLD));
    if (size_of(MPI_COMM_WORLD) == 1) continue;
    MPI_Isend(mine, tag_of_others, MPI_INT, next, tag_of_others, group.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  ShutdownNotice::leave(std::move(group.departures));
  CHECK(all_are_freed());
  CHECK(messages_left == 0);
}

TEST_CASE("the first member to leave does not wait, and frees the communicator at the latest in MPI_Finalize") {
  Group group;
  const bool is_first = rank_in(MPI_COMM_WORLD) == 0;
  if (is_first) ShutdownNotice::leave(std::move(group.departures));
  MPI_Barrier(MPI_COMM_WORLD);
  if (!is_first) ShutdownNotice::leave(std::move(group.departures));
  if (is_first) CHECK(communicators == (size_of(MPI_COMM_WORLD) == 1 ? 0 : 1));
}

TEST_CASE("a member that breaks the group notifies the others in MPI_Finalize, so that they free the communicator") {
  Group group;
  ShutdownNotice& departures = *group.departures;  // must live until then
  const bool breaks = rank_in(MPI_COMM_WORLD) == 0;
  if (breaks) group.departures.release()->leave_at_finalize();
  if (!breaks) ShutdownNotice::leave(std::move(group.departures));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int again = 0; again < 100; ++again) static_cast<void>(ShutdownNotice::free_left());
  CHECK_FALSE(departures.has_left(0));
  MPI_Barrier(MPI_COMM_WORLD);  // no other process finalises MPI before
  if (breaks) --communicators;  // left to MPI_Finalize
}
