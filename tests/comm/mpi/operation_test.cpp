#include <dist/comm/mpi/operation.hpp>
// ranks: 1 2 3 4

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dist/comm/mpi/mpi_all_reduce.hpp>

namespace {

/// Appends decimal digits: not commutative, so it shows the order.
struct Digits : dist::detail::IdentityFinish {
  static constexpr std::string_view name = "digits";
  template <dist::Reducible T>
  static constexpr T identity = T{0};
  template <dist::Reducible T>
  constexpr T operator()(T a, T b) const {
    T shifted = a;
    for (T rest = b; rest >= T{1}; rest = static_cast<T>(static_cast<std::int64_t>(rest) / 10))
      shifted = static_cast<T>(shifted * T{10});
    return static_cast<T>(shifted + b);
  }
};

}  // namespace

TEST_CASE("MPI's own operations stand for ours where they compute the same for all values") {
  using namespace dist;
  CHECK(mpi::operation<Sum, float>() == MPI_SUM);
  CHECK(mpi::operation<Mean, float>() == MPI_SUM);
  CHECK(mpi::operation<detail::Unfinished<Mean>, float>() == MPI_SUM);
  CHECK(mpi::operation<Prod, BFloat16>() == MPI_PROD);
  CHECK(mpi::operation<Min, std::int8_t>() == MPI_MIN);
  CHECK(mpi::operation<Max, std::int64_t>() == MPI_MAX);
  CHECK(mpi::operation<BitAnd, std::uint64_t>() == MPI_BAND);
  CHECK(mpi::operation<BitOr, std::uint64_t>() == MPI_BOR);
  CHECK(mpi::operation<BitXor, std::uint64_t>() == MPI_BXOR);
  CHECK(mpi::operation<Min, bool>() == MPI_LAND);
  CHECK(mpi::operation<Max, bool>() == MPI_LOR);
  CHECK(mpi::operation<BitXor, bool>() == MPI_LXOR);
}

TEST_CASE("what MPI leaves undefined, and what Open MPI computes wrong, goes to operations of ours") {
  using namespace dist;
  const auto ours = [](MPI_Op operation, bool expected_to_commute) {
    int commutes = -1;
    MPI_Op_commutative(operation, &commutes);
    return operation != MPI_SUM && operation != MPI_PROD && operation != MPI_MIN && operation != MPI_MAX &&
           (commutes != 0) == expected_to_commute;
  };
  CHECK(ours(mpi::operation<Sum, std::int8_t>(), true));
  CHECK(ours(mpi::operation<Sum, std::uint16_t>(), true));
  CHECK(ours(mpi::operation<Sum, std::int64_t>(), true));
  CHECK(ours(mpi::operation<Prod, std::int32_t>(), true));
  CHECK(ours(mpi::operation<Min, std::uint32_t>(), true));
  CHECK(ours(mpi::operation<Max, std::uint64_t>(), true));
  CHECK(ours(mpi::operation<Min, float>(), true));
  CHECK(ours(mpi::operation<Max, double>(), true));
  CHECK(ours(mpi::operation<Max, Float16>(), true));
  CHECK(ours(mpi::operation<Digits, std::int64_t>(), false));
}

TEST_CASE("an operation of one's own is made once and combines in rank order") {
  const MPI_Op made = dist::mpi::operation<Digits, std::int64_t>();
  CHECK(made == dist::mpi::operation<Digits, std::int64_t>());
  CHECK(made == dist::mpi::operation<dist::detail::Unfinished<Digits>, std::int64_t>());
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::int64_t digits[2] = {rank + 1, rank + 5};
  REQUIRE(MPI_Allreduce(MPI_IN_PLACE, digits, 2, dist::mpi::datatype<std::int64_t>(), made, MPI_COMM_WORLD) ==
          MPI_SUCCESS);
  const std::int64_t first[] = {1, 12, 123, 1234};
  const std::int64_t second[] = {5, 56, 567, 5678};
  CHECK(digits[0] == first[size - 1]);
  CHECK(digits[1] == second[size - 1]);
}
