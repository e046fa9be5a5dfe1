#include <dist/comm/mpi/split_comm.hpp>
// ranks: 1 2 3 4

#include <array>
#include <cstddef>
#include <limits>
#include <span>

#include <dist/comm/mpi/mpi_all_reduce.hpp>

#include <doctest/doctest.h>

TEST_CASE("members of a colour are a group of their own, ranked by key, which is used when the split has ended") {
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

TEST_CASE("a colour that is no int is an invalid argument") {
  const dist::mpi::Communicator all{dist::mpi::ref(MPI_COMM_WORLD)};
  const std::size_t largest = std::numeric_limits<std::size_t>::max();
  CHECK_THROWS_AS((dist::mpi::SplitComm{all, largest, 0}), dist::InvalidArgument);
  CHECK_THROWS_AS((dist::mpi::SplitComm{all, 0, largest}), dist::InvalidArgument);
}
