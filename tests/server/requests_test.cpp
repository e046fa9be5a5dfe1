#include <dist/server/requests.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/reduce_op.hpp>

#include "support/what_throws.hpp"

namespace {

namespace server = dist::server;

/// Larger than a block of an arena.
struct Large {
  std::array<float, 2000> rates{};
  float operator()(float old, float given) const { return old + rates[1999] * given; }
};

}  // namespace

TEST_CASE("updates of several types and sizes keep their address while a request grows and moves") {
  const std::vector<float> values(2, 1);
  Large large;
  large.rates[1999] = 7;
  server::PushRequest request;
  for (server::ShardId shard = 0; shard < 500; ++shard)
    if (shard % 100 == 0)
      request.dense(shard, large, std::span{values});
    else
      request.dense(shard, dist::sum, std::span{values});
  const server::PushRequest moved = std::move(request);
  REQUIRE(moved.size() == 500);
  for (const server::detail::PushPart& part : moved.parts()) {
    float weights[2] = {1, 2};
    part.values.use([&](server::BytesList given) {
      part.update->apply({dist::io::ElementType::f32, 2, 1, reinterpret_cast<std::byte*>(weights), {}}, given);
    });
    CHECK(weights[1] == (part.shard % 100 == 0 ? 9.0F : 3.0F));
  }
}

TEST_CASE("partial rows are rejected before they are sent") {
  const std::vector<std::int64_t> rows{1, 2};
  std::vector<float> three(3);
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          server::PushRequest{}.rows(7, dist::sum, rows, std::span<const float>{three}, server::DuplicateRows::summed);
        }) == "Rows for shard 7 do not fit together (2 indices and 3 values). Give one row of values for each index.");
  CHECK_THROWS_AS((server::PullRequest{}.rows(7, rows, std::span{three})), dist::ShapeMismatch);
  CHECK_THROWS_AS((server::PullRequest{}.rows(7, {}, std::span{three})), dist::ShapeMismatch);
  CHECK_NOTHROW((server::PullRequest{}.rows(7, rows, std::span<float>{})));
}
