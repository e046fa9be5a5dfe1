// ranks: 1 2
#include <dist/comm/mpi/comm_ref.hpp>

#include <cstddef>
#include <type_traits>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>

using dist::mpi::CommRef;
using support::what_throws;

static_assert(!std::is_constructible_v<CommRef, std::nullptr_t>);

TEST_CASE("a reference to the program's communicator does not change it") {
  CHECK(dist::mpi::ref(MPI_COMM_WORLD).get() == MPI_COMM_WORLD);
}

TEST_CASE("rank and size are std::size_t") {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(dist::mpi::detail::rank_in(MPI_COMM_WORLD) == static_cast<std::size_t>(rank));
  CHECK(dist::mpi::detail::size_of(MPI_COMM_WORLD) == static_cast<std::size_t>(size));
}

TEST_CASE("require_group rejects null and intercommunicators") {
  CHECK_NOTHROW(dist::mpi::detail::require_group(dist::mpi::ref(MPI_COMM_WORLD)));
  const auto none = dist::mpi::ref(MPI_COMM_NULL);
  CHECK(what_throws<dist::InvalidArgument>([&] {
          dist::mpi::detail::require_group(none);
        }).find("it is MPI_COMM_NULL") != std::string::npos);
}
