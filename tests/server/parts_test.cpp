#include <dist/server/parts.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/reduce_op.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard.hpp>

#include "support/what_throws.hpp"

namespace {

namespace detail = dist::server::detail;
using dist::StoreError;
using dist::io::ElementType;
using dist::server::Problem;
using dist::server::PullRequest;
using dist::server::Pushed;
using dist::server::PushRequest;
using dist::server::Shard;
using dist::server::ShardTable;

/// A table with shard 1, which has two rows of two floats.
struct Table {
  Table() { shards.add(shard); }

  std::uint64_t copy(const PullRequest& request) {
    const detail::PullPart& part = request.parts()[0];
    return detail::copy(part, detail::find(part, shards), part.to.data());
  }

  ShardTable shards{std::make_shared<dist::server::StoreMemory>(dist::server::Reach::process, 7)};
  std::shared_ptr<Shard> shard =
      std::make_shared<Shard>(shards.memory(), dist::server::ShardSpec{1, "w", 2, 2, 0}, ElementType::f32);
};

using Four = std::array<float, 4>;

}  // namespace

TEST_CASE("the parts of a push are applied in order") {
  Table table;
  const Four ones{1, 1, 1, 1};
  const std::array<float, 2> row{2, 3};
  const std::vector<std::int64_t> last{1};
  const PushRequest request =
      std::move(PushRequest{}
                    .dense(1, dist::sum, std::span{ones})
                    .rows(1, dist::sum, last, std::span{row}, dist::server::DuplicateRows::summed)
                    .uniform(1, dist::max, 2.0F));
  CHECK(detail::apply(request.parts(), table.shards) == std::vector<Pushed>{{1, 0}, {2, 0}, {3, 0}});
  Four now{};
  const PullRequest pull = std::move(PullRequest{}.dense(1, std::span{now}));
  CHECK(table.copy(pull) == 3);
  CHECK(now == Four{2, 2, 3, 4});
}

TEST_CASE("a push with an invalid part changes nothing") {
  Table table;
  const Four ones{1, 1, 1, 1};
  const std::vector<std::int64_t> none{2};
  const PushRequest request =
      std::move(PushRequest{}
                    .dense(1, dist::sum, std::span{ones})
                    .rows(1, dist::sum, none, std::span{ones}.first(2), dist::server::DuplicateRows::in_order));
  CHECK(support::what_throws<StoreError>([&] {
          static_cast<void>(detail::apply(request.parts(), table.shards));
        }).starts_with("Shard 'w' (number 1) has no row 2 (it has 2)."));
  CHECK(table.shard->version() == 0);
  CHECK(table.shard->lock().memory().weights_as<float>()[0] == 0.0F);
}

TEST_CASE("a pull copies rows in the order of the request, or nothing if the caller has the version") {
  Table table;
  const Four values{1, 2, 3, 4};
  const PushRequest push = std::move(PushRequest{}.dense(1, dist::sum, std::span{values}));
  static_cast<void>(detail::apply(push.parts(), table.shards));
  Four to{};
  const std::vector<std::int64_t> rows{1, 0};
  const PullRequest pull = std::move(PullRequest{}.rows(1, rows, std::span{to}));
  CHECK(detail::find(pull.parts()[0], table.shards).bytes == sizeof to);
  CHECK(table.copy(pull) == 1);
  CHECK(to == Four{3, 4, 1, 2});
  const PullRequest again = std::move(PullRequest{}.dense(1, std::span{to}, {.known = 1}));
  const detail::FoundPull known = detail::find(again.parts()[0], table.shards);
  CHECK(known.is_known);
  CHECK(known.bytes == 0);
  CHECK(detail::copy(again.parts()[0], known, nullptr) == 1);
}

TEST_CASE("invalid bools are rejected") {
  const Table table;
  const Shard bools{table.shards.memory(), {2, "b", 2, 1, 0}, ElementType::boolean};
  const std::array<std::byte, 2> good{std::byte{0}, std::byte{1}}, bad{std::byte{1}, std::byte{2}};
  CHECK_NOTHROW(detail::require_values(bools, good));
  CHECK_THROWS_AS(detail::require_values(bools, bad), StoreError);
  CHECK_NOTHROW(detail::require_values(*table.shard, bad));
}
