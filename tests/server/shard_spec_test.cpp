#include <dist/server/shard_spec.hpp>

#include <doctest/doctest.h>

using dist::server::ShardSpec;
using dist::server::Staleness;

TEST_CASE("to_string of a shard has its name and id") {
  CHECK(to_string(ShardSpec{7, "w/part_1", 3, 4, 12}) == "Shard 'w/part_1' (number 7)");
}

TEST_CASE("staleness is counted and added, and its mean without pushes is 0") {
  Staleness counted;
  CHECK(counted.mean() == 0.0);
  for (const int behind : {0, 2, 1}) counted.count(static_cast<std::uint64_t>(behind));
  CHECK(counted == Staleness{3, 3, 2, 0});
  CHECK(counted.mean() == 1.0);
  Staleness all{1, 4, 4, 2};
  all.add({3, 3, 2, 1});
  CHECK(all == Staleness{4, 7, 4, 3});
}
