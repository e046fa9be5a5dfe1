#include <dist/comm/mpi/communicator.hpp>
// ranks: 1 2 3 4

#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>

namespace {

using namespace std::chrono_literals;
using dist::mpi::Communicator;

static_assert(dist::Network<Communicator>);

Communicator world() { return Communicator{dist::mpi::ref(MPI_COMM_WORLD), {.timeout = 60s}}; }

template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const dist::InvalidArgument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a member has its rank, and all members and their hosts") {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const Communicator comm = world();
  CHECK(comm.rank() == static_cast<std::size_t>(rank));
  CHECK(comm.size() == static_cast<std::size_t>(size));
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  for (std::size_t member = 0; member < comm.size(); ++member) {
    CHECK(comm.worker(member) == member);
    CHECK(comm.host(member) == host);
  }
}

TEST_CASE("the program's own messages and error handling are not affected") {
  const Communicator comm = world();
  int relation = 0;
  MPI_Comm_compare(comm.native(), MPI_COMM_WORLD, &relation);
  CHECK(relation == MPI_CONGRUENT);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  int number = 0;
  CHECK(MPI_Send(&number, 1, MPI_INT, 1 << 20, 0, comm.native()) != MPI_SUCCESS);  // and the program continues
}

TEST_CASE("null and intercommunicators are rejected") {
  CHECK(refusal([] { Communicator{dist::mpi::ref(MPI_COMM_NULL)}; }).find("it is MPI_COMM_NULL") != std::string::npos);
  CHECK(refusal([] {
          Communicator{dist::mpi::ref(MPI_COMM_WORLD), {.timeout = -1s}};
        }).find("negative") != std::string::npos);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm both = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : 1, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 9, &both);
  CHECK(refusal([&] { Communicator{dist::mpi::ref(both)}; }).find("it joins two groups") != std::string::npos);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

TEST_CASE("a group may have a part of the program's processes, in another order") {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  const Communicator comm{dist::mpi::ref(reversed), {.timeout = 60s, .worker = static_cast<std::size_t>(rank)}};
  MPI_Comm_free(&reversed);
  for (std::size_t member = 0; member < comm.size(); ++member) CHECK(comm.worker(member) == comm.size() - 1 - member);
  CHECK_NOTHROW(comm.barrier());
}

TEST_CASE("bytes are sent and received in order") {
  const Communicator comm = world();
  const std::size_t right = (comm.rank() + 1) % comm.size();
  const std::size_t left = (comm.rank() + comm.size() - 1) % comm.size();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{300000}}) {
    std::vector<std::int32_t> mine(count, static_cast<std::int32_t>(comm.rank()));
    std::vector<std::int32_t> theirs(count, -1);
    for (int round = 0; round < 3; ++round) {
      for (std::int32_t& value : mine) value += 100;
      Communicator::Transfer incoming = comm.start_receive(std::as_writable_bytes(std::span{theirs}), left);
      Communicator::Transfer outgoing = comm.start_send(std::as_bytes(std::span{mine}), right);
      comm.wait(incoming);
      comm.wait(outgoing);
      CHECK(theirs == std::vector<std::int32_t>(count, static_cast<std::int32_t>(left) + 100 * (round + 1)));
    }
  }
}

TEST_CASE("without checks an announcement returns at once; a barrier still waits for all (spec H13)") {
  const Communicator comm = world().with_timeout(200ms);
  const Communicator unchecked = comm.with_checks(dist::CollectiveChecks::none);
  CHECK(unchecked.checks() == dist::CollectiveChecks::none);
  for (int call = 0; call < 3; ++call) unchecked.announce({.operation = "all_reduce", .elements = comm.rank()});
  CHECK_NOTHROW(comm.with_timeout(60s).barrier());
  CHECK_THROWS_AS(comm.with_timeout(-1ns), dist::InvalidArgument);
  MPI_Barrier(MPI_COMM_WORLD);
  if (comm.size() > 1 && comm.rank() == 0) CHECK_THROWS_AS(unchecked.barrier(), dist::DeadlineExceeded);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("copies share the membership, which lives as long as one of them") {
  Communicator comm = world();
  {
    const Communicator copy = comm;
    copy.barrier();
  }
  comm.barrier();
  comm = world();
  CHECK_NOTHROW(comm.barrier());
}

TEST_CASE("processes on this machine are monitored, and live") {
  dist::PeerHealth health;
  const Communicator comm = world();
  comm.watch_processes(health);
  CHECK_NOTHROW(health.look());
  comm.barrier();
}

TEST_CASE("other threads are rejected if MPI allows only one") {
  const Communicator comm = world();
  int provided = 0;
  MPI_Query_thread(&provided);
  if (provided >= MPI_THREAD_SERIALIZED) return;
  std::string message;
  std::thread other([&] { message = refusal([&] { comm.barrier(); }); });
  other.join();
  CAPTURE(message);
  CHECK(message.find(
            "MPI was called from a thread that must not call it (barrier in a thread that did not initialise MPI") ==
        0);
}

TEST_CASE("members of a colour form a group, ranked by key, which can be used after the split") {
  const dist::mpi::Communicator all{dist::mpi::ref(MPI_COMM_WORLD)};
  const std::size_t rank = all.rank();
  const auto part = [&] {
    const dist::mpi::SplitComm split{all, rank % 2, all.size() - rank};
    return dist::mpi::Communicator{split.comm()};
  }();
  const std::size_t members = (all.size() + 1 - rank % 2) / 2;
  CHECK(part.size() == members);
  CHECK(part.rank() == members - 1 - rank / 2);
  std::array<std::size_t, 1> sum{rank};
  dist::MpiAllReduce::On<dist::mpi::Communicator>{part}.all_reduce(dist::sum, std::span<std::size_t>{sum});
  std::size_t expected = 0;
  for (std::size_t member = rank % 2; member < all.size(); member += 2) expected += member;
  CHECK(sum[0] == expected);
}

TEST_CASE("a colour beyond int is an invalid argument") {
  const dist::mpi::Communicator all{dist::mpi::ref(MPI_COMM_WORLD)};
  const std::size_t largest = std::numeric_limits<std::size_t>::max();
  CHECK_THROWS_AS((dist::mpi::SplitComm{all, largest, 0}), dist::InvalidArgument);
  CHECK_THROWS_AS((dist::mpi::SplitComm{all, 0, largest}), dist::InvalidArgument);
}
