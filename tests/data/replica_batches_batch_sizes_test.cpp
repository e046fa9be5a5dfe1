#include <dist/data/replica_batches.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

using dist::IndexRange;
using dist::InvalidArgument;
using dist::data::batch_sizes_for_worker;
using dist::data::rows_of_replica;

using Sizes = std::vector<std::size_t>;

TEST_CASE("the cycle of sizes matches manual results (spec I04)") {
  CHECK(batch_sizes_for_worker(8, 1, 1, 0) == Sizes{8});
  CHECK(batch_sizes_for_worker(8, 1, 4, 0) == Sizes{2, 2, 2, 2});
  CHECK(batch_sizes_for_worker(8, 1, 3, 0) == Sizes{3, 3, 2});
  CHECK(batch_sizes_for_worker(5, 1, 2, 0) == Sizes{3, 2});
  // Not an initializer list of 8: g++ 12 with AVX-512 turns {1, 1, 1, 0, 0, 0, 0, 0} into eight ones.
  Sizes three_of_eight(8);
  std::fill_n(three_of_eight.begin(), 3, std::size_t{1});
  CHECK(batch_sizes_for_worker(3, 1, 8, 0) == three_of_eight);
  // 7 rows for 2 workers of 2 replicas: 7 = 4 * 1 + 3, so three shares of 2 and one of 1, rotated by 2 for worker 1.
  CHECK(batch_sizes_for_worker(7, 2, 2, 0) == Sizes{2, 2, 2, 1});
  CHECK(batch_sizes_for_worker(7, 2, 2, 1) == Sizes{2, 1, 2, 2});
  CHECK(batch_sizes_for_worker(5, 3, 1, 0) == Sizes{2, 2, 1});
  CHECK(batch_sizes_for_worker(5, 3, 1, 1) == Sizes{2, 1, 2});
  CHECK(batch_sizes_for_worker(5, 3, 1, 2) == Sizes{1, 2, 2});
}

TEST_CASE("the cycle of sizes has its guaranteed properties (spec I04)") {
  for (const std::size_t workers : {1U, 2U, 3U, 4U, 8U})
    for (const std::size_t local : {1U, 2U, 3U, 4U, 8U})
      for (const std::size_t global : {1U, 2U, 3U, 5U, 7U, 8U, 31U, 32U, 63U, 64U, 65U, 1000U}) {
        CAPTURE(workers);
        CAPTURE(local);
        CAPTURE(global);
        Sizes of_step(workers);
        std::size_t least = global;
        std::size_t most = 0;
        for (std::size_t worker = 0; worker < workers; ++worker) {
          const Sizes sizes = batch_sizes_for_worker(global, workers, local, worker);
          REQUIRE(sizes.size() == workers * local);
          std::size_t sum = 0;
          for (std::size_t entry = 0; entry < sizes.size(); ++entry) {
            sum += sizes[entry];
            of_step[entry / local] += sizes[entry];
            least = std::min(least, sizes[entry]);
            most = std::max(most, sizes[entry]);
          }
          CHECK(sum == global);
        }
        CHECK(of_step == Sizes(workers, global));
        CHECK(most - least <= 1);
      }
}

TEST_CASE("batch_sizes_for_worker rejects 0 rows, workers or replicas") {
  CHECK_THROWS_WITH_AS(static_cast<void>(batch_sizes_for_worker(0, 1, 2, 0)),
                       doctest::Contains("0 rows for 1 workers of 2 replicas"), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(batch_sizes_for_worker(1, 0, 2, 0)), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(batch_sizes_for_worker(1, 1, 0, 0)), InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(batch_sizes_for_worker(4, 2, 1, 2)), doctest::Contains("worker 2 of 2"),
                       InvalidArgument);
}

TEST_CASE("a batch is cut into slices of ceil(b / R), full ones first (spec I05)") {
  CHECK(rows_of_replica(3, 0, 2) == IndexRange{0, 2});
  CHECK(rows_of_replica(3, 1, 2) == IndexRange{2, 3});
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U})
    for (std::size_t rows = 0; rows <= 40; ++rows) {
      CAPTURE(replicas);
      CAPTURE(rows);
      const std::size_t slice = (rows + replicas - 1) / replicas;
      std::size_t next = 0;
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        const IndexRange range = rows_of_replica(rows, replica, replicas);
        CHECK(range.begin == next);
        CHECK(range.size() == std::min(slice, rows - next));
        next = range.end;
      }
      CHECK(next == rows);
    }
}
