#include <dist/comm/mpi/mpi_all_reduce.hpp>
// ranks: 1 2 3 4

#include <doctest/doctest.h>

#include <conformance/process_collectives.hpp>
#include <conformance/work_memory.hpp>
#include <support/mpi_group.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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

TEST_CASE("MPI's predefined operations are used if they give the same results for all values") {
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

TEST_CASE("operations that MPI leaves undefined, or Open MPI computes wrong, are our own") {
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

TEST_CASE("a custom operation is created once and combines in rank order") {
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

static_assert(dist::CrossDeviceOps<dist::MpiAllReduce, dist::mpi::Communicator>);

TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::MpiGroup<dist::MpiAllReduce>);
TEST_CASE_TEMPLATE_INSTANTIATE(work_memory, support::MpiGroup<dist::MpiAllReduce>);

TEST_CASE("large collectives are split into several MPI calls") {
  using InPieces = dist::detail::MessageCollectives<dist::mpi::Communicator, dist::detail::MpiAlgorithm<1024>>;
  const InPieces ops{dist::mpi::Communicator{dist::mpi::ref(MPI_COMM_WORLD)}};
  const std::size_t members = ops.communicator().size();
  const std::size_t rank = ops.communicator().rank();
  const auto all = static_cast<float>(members);
  constexpr std::size_t count = 5000;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + rank);
  const float ranks = all * (all - 1) / 2;
  int wrong = 0;

  std::vector<float> sums = values;
  ops.all_reduce(dist::sum, std::span{sums});
  for (std::size_t i = 0; i < count; ++i) wrong += sums[i] != static_cast<float>(i) * all + ranks;

  std::vector<float> root = values;
  ops.broadcast(members - 1, std::span{root});
  for (std::size_t i = 0; i < count; ++i) wrong += root[i] != static_cast<float>(i + members - 1);

  std::vector<float> updated(count, 1);
  ops.reduce_and_apply(dist::sum, std::span<const float>{values}, std::span{updated},
                       [](std::size_t, float weight, float gradient) { return weight + gradient; });
  for (std::size_t i = 0; i < count; ++i) wrong += updated[i] != 1 + static_cast<float>(i) * all + ranks;

  std::vector<std::size_t> counts;
  std::vector<float> expected;
  for (std::size_t member = 0; member < members; ++member) {
    counts.push_back(count + member);
    expected.insert(expected.end(), count + member, static_cast<float>(member));
  }
  std::vector<float> gathered(expected.size());
  const std::vector<float> mine(counts[rank], static_cast<float>(rank));
  ops.all_gather(std::span<const float>{mine}, std::span<const std::size_t>{counts}, std::span{gathered});
  CHECK(gathered == expected);
  CHECK(wrong == 0);
}
