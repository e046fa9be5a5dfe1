#include <dist/comm/all_reduce_slices.hpp>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/self.hpp>
#include <dist/strategy/mirrored.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <support/unshared.hpp>

using dist::IndexedSlices;

namespace {

/// Rows of two elements: row i of replica `rank` is [10 rank + i, 1].
IndexedSlices<float> slices_of(std::size_t rank, std::vector<std::int64_t> indices) {
  IndexedSlices<float> slices(indices.size(), {8, 2});
  for (std::size_t row = 0; row < indices.size(); ++row) {
    slices.indices()[row] = indices[row];
    slices.values()(row, std::size_t{0}) = static_cast<float>(10 * rank + row);
    slices.values()(row, std::size_t{1}) = 1;
  }
  return slices;
}

std::vector<float> values_of(const IndexedSlices<float>& slices) {
  return {slices.values().data(), slices.values().data() + slices.values().size()};
}
std::vector<std::int64_t> indices_of(const IndexedSlices<float>& slices) {
  return {slices.indices().begin(), slices.indices().end()};
}

}  // namespace

TEST_CASE("a group of one keeps its slices (spec H03)") {
  const IndexedSlices<float> mine = slices_of(1, {3, 3});
  const auto all = dist::all_reduce_slices(dist::SelfCollectives{}, dist::mean, mine.view());
  CHECK(indices_of(all) == std::vector<std::int64_t>{3, 3});
  CHECK(values_of(all) == std::vector<float>{10, 1, 11, 1});
}

TEST_CASE("a single replica uses its slices in place") {
  const IndexedSlices<float> own = slices_of(1, {3, 3});
  const auto own_view = own.view();
  int calls = 0;
  dist::with_slices_of_all(dist::SelfCollectives{}, own_view, [&](std::size_t members, const auto& slices_of_rank) {
    ++calls;
    CHECK(members == 1);
    CHECK(&slices_of_rank(0) == &own_view);
  });
  CHECK(calls == 1);
}

TEST_CASE_TEMPLATE("all replicas use the same slices, in rank order with duplicates (spec H10)", Ops,
                   dist::ThreadAllReduce, testing::Unshared) {
  dist::Mirrored<Ops> strategy{3};
  const auto wrong = strategy.run([](auto& replica) {
    std::size_t mistakes = 0;
    for (int round = 0; round < 50; ++round) {
      // Replica r gives r rows; they are destroyed at the end of the function.
      const IndexedSlices<float> mine =
          slices_of(replica.local_index(), std::vector<std::int64_t>(replica.local_index(), 2));
      dist::with_slices_of_all(
          replica.collectives(), mine.view(), [&](std::size_t members, const auto& slices_of_rank) {
            mistakes += members != 3;
            for (std::size_t rank = 0; rank < members; ++rank) {
              const dist::IndexedSlicesView<float>& theirs = slices_of_rank(rank);
              mistakes += theirs.rows() != rank || theirs.dense_shape() != dist::Shape{8, 2};
              for (std::size_t row = 0; row < theirs.rows(); ++row)
                mistakes +=
                    theirs.indices()[row] != 2 || theirs.values().row(row)[0] != static_cast<float>(10 * rank + row);
            }
          });
    }
    return mistakes;
  });
  for (const std::size_t mistakes : wrong) CHECK(mistakes == 0);
}

TEST_CASE_TEMPLATE("slices with different dense shapes throw on every replica", Ops, dist::ThreadAllReduce,
                   testing::Unshared) {
  dist::Mirrored<Ops> strategy{3};
  const auto message_of = [&](auto reduce) {
    try {
      strategy.run([&](auto& replica) {
        const IndexedSlices<float> mine(0, {replica.local_index() == 2 ? std::size_t{5} : std::size_t{4}, 2});
        reduce(replica, mine.view());
      });
    } catch (const dist::ReplicaError& error) {
      CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::ShapeMismatch);
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const std::string expected =
      "The indexed slices of replica 2 cannot be reduced with replica 0's (their arrays have shapes [5, 2] and [4, 2])";
  const std::string of_reduction = message_of([](auto& replica, const auto& mine) {
    static_cast<void>(dist::all_reduce_slices(replica.collectives(), dist::sum, mine));
  });
  CAPTURE(of_reduction);
  CHECK(of_reduction.find(expected) != std::string::npos);
  const std::string of_use = message_of([](auto& replica, const auto& mine) {
    dist::with_slices_of_all(replica.collectives(), mine, [](std::size_t, const auto&) {});
  });
  CAPTURE(of_use);
  CHECK(of_use.find(expected) != std::string::npos);
}

TEST_CASE("densify adds rows with the same index (spec P14)") {
  const dist::Tensor<float> dense = dist::densify(slices_of(0, {5, 2, 5}).view());
  CHECK(dense.shape() == dist::Shape{8, 2});
  for (std::size_t row = 0; row < 8; ++row) {
    CHECK(dense.view()(row, std::size_t{0}) == (row == 5 ? 0 + 2 : row == 2 ? 1 : 0));
    CHECK(dense.view()(row, std::size_t{1}) == (row == 5 ? 2 : row == 2 ? 1 : 0));
  }
}

TEST_CASE("deduplicate returns each index once, in ascending order (spec P14)") {
  const auto unique = dist::deduplicate(slices_of(0, {5, 2, 5, 0, 2, 5}).view());
  CHECK(indices_of(unique) == std::vector<std::int64_t>{0, 2, 5});
  CHECK(values_of(unique) == std::vector<float>{3, 1, 1 + 4, 2, 0 + 2 + 5, 3});
  CHECK(dist::deduplicate(slices_of(0, {}).view()).rows() == 0);
}

TEST_CASE("deduplicate adds any number of values of an index in the given order (spec P14)") {
  constexpr std::size_t rows = 200;
  dist::IndexedSlices<float> slices(rows, {3, 1});
  float sums[3] = {0, 0, 0};
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t index = row * row % 3;
    const float value = row % 7 == 0 ? 1e7f : row % 7 == 4 ? -1e7f : 1.0f / static_cast<float>(row + 1);
    slices.indices()[row] = static_cast<std::int64_t>(index);
    slices.values().row(row)[0] = value;
    sums[index] += value;
  }
  const auto unique = dist::deduplicate(slices.view());
  CHECK(indices_of(unique) == std::vector<std::int64_t>{0, 1});
  CHECK(values_of(unique) == std::vector<float>{sums[0], sums[1]});
}

TEST_CASE("sums of 16-bit types are rounded once (spec P14)") {
  // From 2048 on, Float16 has even numbers only: 2048 + 1 is rounded to 2048, but 2048 + 1 + 1 to 2050.
  dist::IndexedSlices<dist::Float16> slices(3, {2, 1});
  for (std::size_t row = 0; row < 3; ++row) {
    slices.indices()[row] = 1;
    slices.values().row(row)[0] = static_cast<dist::Float16>(row == 0 ? 2048.0f : 1.0f);
  }
  CHECK(static_cast<float>(dist::densify(slices.view())[0]) == 0);
  CHECK(static_cast<float>(dist::densify(slices.view())[1]) == 2050);
  const auto unique = dist::deduplicate(slices.view());
  CHECK(unique.rows() == 1);
  CHECK(static_cast<float>(unique.values()[0]) == 2050);
}
