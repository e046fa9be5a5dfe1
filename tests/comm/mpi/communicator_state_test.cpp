// Messages and members after failures; communicator_test.cpp has the other tests.
#include <dist/comm/mpi/communicator_state.hpp>
// ranks: 2 3 4

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
using dist::mpi::detail::CommunicatorState;
constexpr std::int64_t minute = 60'000'000'000;

std::shared_ptr<CommunicatorState> group(dist::mpi::CommunicatorOptions options = {.timeout = 60s}) {
  return std::make_shared<CommunicatorState>(dist::mpi::ref(MPI_COMM_WORLD), std::move(options));
}

/// The text of the E that `call` throws.
template <class E, class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& other) {
    return dist::concat("another error: ", other.what());
  }
  return "no error";
}

}  // namespace

TEST_CASE("members have the given names and hosts of all others") {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto state = group({.timeout = 60s, .worker = static_cast<std::size_t>(10 + 2 * rank), .host = "east"});
  CHECK(state->rank() == static_cast<std::size_t>(rank));
  for (std::size_t member = 0; member < state->size(); ++member) {
    CHECK(state->worker(member) == 10 + 2 * member);
    CHECK(state->host(member) == "east");
  }
  const std::string message = error_of<dist::CollectiveMismatch>(
      [&] { state->meet({.operation = "barrier", .elements = state->rank()}, minute); });
  CAPTURE(message);
  CHECK(message.find(dist::concat("worker ", 10 + 2 * rank, " (host east) called barrier as step 1")) !=
        std::string::npos);
}

TEST_CASE("messages of an interrupted collective are never mistaken for messages of another one") {
  const auto state = group();
  const std::size_t right = (state->rank() + 1) % state->size();
  const std::size_t left = (state->rank() + state->size() - 1) % state->size();
  // Members 1 and up wait for member 0 when it fails; their messages are in transit.
  int old = 1000;
  CommunicatorState::Transfer early = state->start_send(std::as_bytes(std::span{&old, 1}), right);
  state->wait(early, minute);
  if (state->rank() == 0) {
    state->cancel("the disk is full");
  } else {
    const std::string message = error_of<dist::PeerError>([&] { state->meet({.operation = "barrier"}, minute); });
    CAPTURE(message);
    CHECK(message.find("the disk is full") != std::string::npos);
  }
  CHECK_FALSE(state->is_broken());
  state->meet({.operation = "barrier"}, minute);
  int mine = static_cast<int>(state->rank());
  int theirs = -1;
  auto incoming = state->start_receive(std::as_writable_bytes(std::span{&theirs, 1}), left);
  auto outgoing = state->start_send(std::as_bytes(std::span{&mine, 1}), right);
  state->wait(incoming, minute);
  state->wait(outgoing, minute);
  CHECK(theirs == static_cast<int>(left));
}

TEST_CASE("a timeout while waiting for bytes is reported, and breaks the communicator (spec H13)") {
  const auto state = group();
  state->meet({.operation = "all_reduce", .reduction = "sum", .elements = 3, .dtype = "f32"}, minute);
  if (state->rank() == 0) {
    std::byte never{};
    auto transfer = state->start_receive(std::span{&never, 1}, 1);
    const std::string message = error_of<dist::DeadlineExceeded>([&] { state->wait(transfer, 50'000'000); });
    CAPTURE(message);
    CHECK(message.find("worker 1 (host ") != std::string::npos);
    CHECK(message.find("all_reduce(sum) of 3 f32") != std::string::npos);
    CHECK(state->is_broken());
    CHECK(error_of<dist::DeadlineExceeded>([&] { state->require_usable("a barrier"); }) == message);
  } else {
    // The others learn of it in their next collective.
    const std::string message =
        error_of<dist::DeadlineExceeded>([&] { state->meet({.operation = "barrier"}, minute); });
    CAPTURE(message);
    CHECK(message.find("worker 0 (host ") != std::string::npos);
    CHECK(message.find("did not") != std::string::npos);
    CHECK(state->is_broken());
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a lost member is an error also for members that wait for another one, and all are notified (spec O01)") {
  dist::PeerHealth health;
  const auto state = group({.timeout = 60s, .health = &health});
  const std::size_t last = state->size() - 1;
  if (state->rank() == 0) health.lose({77, "west", "a test said so"});
  if (state->rank() != last) {
    const std::string message = error_of<dist::Unavailable>([&] { state->meet({.operation = "barrier"}, minute); });
    CAPTURE(message);
    CHECK(message.find("Worker 77 on host west is gone") == 0);
    CHECK(message.find("a test said so") != std::string::npos);
    CHECK(state->is_broken());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // A member that arrives later finds the notice before it would wait in vain.
  if (state->rank() == last)
    CHECK(error_of<dist::Unavailable>([&] {
            state->meet({.operation = "barrier"}, minute);
            state->look_for_failures(true);
          }).find("Worker 77 on host west is gone") == 0);
}

TEST_CASE("every collective after a member has left reports it") {
  auto state = group();
  const std::size_t last = state->size() - 1;
  const std::size_t rank = state->rank();
  state->meet({.operation = "barrier"}, minute);
  if (rank == last) {
    state.reset();
  } else {
    const std::string message =
        error_of<dist::CollectiveMismatch>([&] { state->meet({.operation = "all_reduce"}, minute); });
    CAPTURE(message);
    CHECK(message.find(dist::concat("worker ", rank, " (host ")) != std::string::npos);
    CHECK(message.find(" called all_reduce as step 2") != std::string::npos);
    CHECK(message.find(dist::concat(", but worker ", last, " (host ")) != std::string::npos);
    CHECK(message.find("has ended its strategy; its last collective: barrier, step 1") != std::string::npos);
    CHECK(state->is_broken());
    CHECK(error_of<dist::CollectiveMismatch>([&] { state->require_usable("a barrier"); }) == message);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a member that leaves after the last collective does not disturb members still in it") {
  // The first one waits for bytes of the second one; the others have sent theirs and left.
  for (int round = 0; round < 20; ++round) {
    auto state = group();
    const std::size_t first = static_cast<std::size_t>(round) % state->size();
    for (int step = 0; step < 3; ++step) state->meet({.operation = "barrier"}, minute);
    if (state->rank() != first) {
      if (state->rank() == (first + 1) % state->size()) std::this_thread::sleep_for(5ms);
      auto outgoing = state->start_send(std::as_bytes(std::span{&round, 1}), first);
      state->wait(outgoing, minute);
    } else {
      for (std::size_t next = 1; next < state->size(); ++next) {
        int heard = -1;
        auto incoming =
            state->start_receive(std::as_writable_bytes(std::span{&heard, 1}), (first + next) % state->size());
        state->wait(incoming, minute);
        CHECK(heard == round);
      }
    }
  }
}

TEST_CASE("a member's failure takes precedence over its departure") {
  auto state = group();
  const std::size_t rank = state->rank();
  if (rank == 0) {
    state->cancel("the disk is full");
    state.reset();
  } else {
    CHECK(error_of<dist::PeerError>([&] { state->meet({.operation = "barrier"}, minute); }).find("the disk is full") !=
          std::string::npos);
    CHECK(error_of<dist::CollectiveMismatch>([&] {
            state->meet({.operation = "barrier"}, minute);
          }).find("but worker 0 (host ") != std::string::npos);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("work memory is kept and aligned") {
  const auto state = group();
  std::byte* const first = state->scratch(0, 1000);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % dist::cache_line == 0);
  CHECK(state->scratch(0, 10) == first);
  CHECK(state->scratch(1, 10) != first);
}
