#include <dist/comm/all_reduce_slices.hpp>

#include <doctest/doctest.h>

#include <dist/comm/reduction_to_one_device.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/shared_memory_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

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

/// Replica r has r rows: its number, and repetitions of 7.
std::vector<std::int64_t> indices_of(std::size_t rank) {
  std::vector<std::int64_t> indices(rank, 7);
  if (rank > 0) indices[0] = static_cast<std::int64_t>(rank % 8);
  return indices;
}

std::vector<float> values_of(const IndexedSlices<float>& slices) {
  return {slices.values().data(), slices.values().data() + slices.values().size()};
}
std::vector<std::int64_t> indices_of(const IndexedSlices<float>& slices) {
  return {slices.indices().begin(), slices.indices().end()};
}

}  // namespace

TEST_CASE_TEMPLATE("slices of all replicas stand behind each other in rank order, repetitions kept (spec H10)", Ops,
                   dist::SharedMemoryAllReduce, dist::ReductionToOneDevice) {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{8}}) {
    dist::Mirrored<Ops> strategy{replicas};
    std::vector<std::int64_t> indices;
    std::vector<float> sums;
    std::vector<float> means;
    for (std::size_t rank = 0; rank < replicas; ++rank)
      for (std::size_t row = 0; row < rank; ++row) {
        indices.push_back(indices_of(rank)[row]);
        for (const float value : {static_cast<float>(10 * rank + row), 1.0f}) {
          sums.push_back(value);
          means.push_back(value / static_cast<float>(replicas));
        }
      }
    std::vector<int> wrong(replicas);
    strategy.run([&](auto& replica) {
      const std::size_t rank = replica.local_index();
      const IndexedSlices<float> mine = slices_of(rank, indices_of(rank));
      const auto sum = dist::all_reduce_slices(replica.collectives(), dist::sum, mine.view());
      const auto mean = dist::all_reduce_slices(replica.collectives(), dist::mean, mine.view());
      wrong[rank] = indices_of(sum) != indices || values_of(sum) != sums || indices_of(mean) != indices ||
                    values_of(mean) != means || sum.dense_shape() != dist::Shape{8, 2};
    });
    CHECK(wrong == std::vector<int>(replicas));
  }
}

TEST_CASE("a group of one keeps its slices (spec H03)") {
  const IndexedSlices<float> mine = slices_of(1, {3, 3});
  const auto all = dist::all_reduce_slices(dist::SelfCollectives{}, dist::mean, mine.view());
  CHECK(indices_of(all) == std::vector<std::int64_t>{3, 3});
  CHECK(values_of(all) == std::vector<float>{10, 1, 11, 1});
}

TEST_CASE("slices of different arrays are refused on every replica") {
  dist::Mirrored<dist::SharedMemoryAllReduce> strategy{3};
  std::string message;
  try {
    strategy.run([](auto& replica) {
      const IndexedSlices<float> mine(0, {replica.local_index() == 2 ? std::size_t{5} : std::size_t{4}, 2});
      static_cast<void>(dist::all_reduce_slices(replica.collectives(), dist::sum, mine.view()));
    });
  } catch (const dist::ReplicaError& error) {
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::ShapeMismatch);
    message = error.what();
  }
  CHECK(message.find(
            "The indexed slices of replica 2 cannot be reduced with replica 0's (they are of arrays of shape [5, 2] "
            "and [4, 2])") != std::string::npos);
}

TEST_CASE("rows of one index add up in the dense array (spec P14)") {
  const dist::Tensor<float> dense = dist::densify(slices_of(0, {5, 2, 5}).view());
  CHECK(dense.shape() == dist::Shape{8, 2});
  for (std::size_t row = 0; row < 8; ++row) {
    CHECK(dense.view()(row, std::size_t{0}) == (row == 5 ? 0 + 2 : row == 2 ? 1 : 0));
    CHECK(dense.view()(row, std::size_t{1}) == (row == 5 ? 2 : row == 2 ? 1 : 0));
  }
}

TEST_CASE("each index is there once after deduplicate, in ascending order (spec P14)") {
  const auto unique = dist::deduplicate(slices_of(0, {5, 2, 5, 0, 2, 5}).view());
  CHECK(indices_of(unique) == std::vector<std::int64_t>{0, 2, 5});
  CHECK(values_of(unique) == std::vector<float>{3, 1, 1 + 4, 2, 0 + 2 + 5, 3});
  CHECK(dist::deduplicate(slices_of(0, {}).view()).rows() == 0);
}
