#include <dist/comm/mpi/operation.hpp>
// ranks: 1 2 3 4

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dist/comm/mpi/datatype.hpp>

namespace {

/// Appends decimal digits: not commutative, so it shows the order.
struct Digits : dist::detail::FinishesAsIs {
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

TEST_CASE("MPI's own operations stand for ours") {
  using namespace dist;
  CHECK(mpi::operation<Sum, float>() == MPI_SUM);
  CHECK(mpi::operation<Mean, float>() == MPI_SUM);
  CHECK(mpi::operation<detail::Unfinished<Mean>, float>() == MPI_SUM);
  CHECK(mpi::operation<Prod, BFloat16>() == MPI_PROD);
  CHECK(mpi::operation<Min, std::int8_t>() == MPI_MIN);
  CHECK(mpi::operation<Max, double>() == MPI_MAX);
  CHECK(mpi::operation<BitAnd, std::uint64_t>() == MPI_BAND);
  CHECK(mpi::operation<BitOr, std::uint64_t>() == MPI_BOR);
  CHECK(mpi::operation<BitXor, std::uint64_t>() == MPI_BXOR);
  CHECK(mpi::operation<Min, bool>() == MPI_LAND);
  CHECK(mpi::operation<Max, bool>() == MPI_LOR);
  CHECK(mpi::operation<BitXor, bool>() == MPI_LXOR);
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
