#include <dist/core/index_range.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>

using dist::IndexRange;
using dist::shard_of;

TEST_CASE("a range counts its indices") {
  static_assert(IndexRange{}.size() == 0);
  static_assert(IndexRange{3, 10}.size() == 7);
  CHECK(IndexRange{3, 10} == IndexRange{3, 10});
  CHECK(IndexRange{3, 10} != IndexRange{3, 11});
  CHECK(IndexRange{3, 10} != IndexRange{2, 10});
}

TEST_CASE("ten indices in four shards are 3, 3, 2 and 2") {
  static_assert(shard_of(10, 0, 4) == IndexRange{0, 3});
  static_assert(shard_of(10, 1, 4) == IndexRange{3, 6});
  static_assert(shard_of(10, 2, 4) == IndexRange{6, 8});
  static_assert(shard_of(10, 3, 4) == IndexRange{8, 10});
  CHECK(shard_of(40, 1, 2, 16) == IndexRange{32, 40});
}

TEST_CASE("shards cover all indices once, in order, at granule boundaries, nearly equally") {
  std::size_t broken_seams = 0;
  std::size_t unaligned = 0;
  std::size_t uneven = 0;
  std::size_t short_of_end = 0;
  for (const std::size_t granule : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{8}, std::size_t{16}})
    for (std::size_t parts = 1; parts <= 9; ++parts)
      for (std::size_t count = 0; count <= 150; ++count) {
        std::size_t reached = 0;
        std::size_t fewest = count;
        std::size_t most = 0;
        for (std::size_t part = 0; part < parts; ++part) {
          const IndexRange shard = shard_of(count, part, parts, granule);
          if (shard.begin != reached || shard.end < shard.begin) ++broken_seams;
          if (shard.begin != count && shard.begin % granule != 0) ++unaligned;
          const std::size_t granules = (shard.size() + granule - 1) / granule;
          fewest = std::min(fewest, granules);
          most = std::max(most, granules);
          reached = shard.end;
        }
        if (reached != count) ++short_of_end;
        if (most > fewest + 1) ++uneven;
      }
  CHECK(broken_seams == 0);
  CHECK(unaligned == 0);
  CHECK(uneven == 0);
  CHECK(short_of_end == 0);
}

TEST_CASE("with fewer indices than parts, the last parts are empty") {
  CHECK(shard_of(2, 0, 4) == IndexRange{0, 1});
  CHECK(shard_of(2, 1, 4) == IndexRange{1, 2});
  CHECK(shard_of(2, 2, 4).size() == 0);
  CHECK(shard_of(2, 3, 4).size() == 0);
  CHECK(shard_of(0, 0, 1).size() == 0);
}

TEST_CASE("a single part contains all indices") {
  CHECK(shard_of(12345, 0, 1) == IndexRange{0, 12345});
  CHECK(shard_of(12345, 0, 1, 64) == IndexRange{0, 12345});
}

TEST_CASE("shards of counts beyond 32 bits are exact") {
  constexpr std::size_t count = (std::size_t{1} << 40) + 1;
  CHECK(shard_of(count, 0, 2) == IndexRange{0, (std::size_t{1} << 39) + 1});
  CHECK(shard_of(count, 1, 2) == IndexRange{(std::size_t{1} << 39) + 1, count});
}
