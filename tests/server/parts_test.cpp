#include <dist/server/shard_parts.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/reduce_op.hpp>

#include "support/what_throws.hpp"

namespace {

namespace detail = dist::server::detail;
using dist::ArchiveError;
using dist::ArchiveReader;
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

  std::vector<detail::PushPart> parts_of(const PushRequest& request) {
    const dist::rpc::PieceList pieces = request.pieces();
    ArchiveReader reader{pieces, "A request"};
    return detail::get_push_parts(reader, request.size(), shards);
  }
  detail::PullPart part_of(const PullRequest& request) {
    const dist::rpc::PieceList pieces = request.pieces();
    ArchiveReader reader{pieces, "A request"};
    return detail::get_pull_parts(reader, request.size(), shards).at(0);
  }

  ShardTable shards{std::make_shared<dist::server::StoreMemory>(dist::server::Reach::process, 7)};
  std::shared_ptr<Shard> shard =
      std::make_shared<Shard>(shards.memory(), dist::server::ShardSpec{1, "w", 2, 2, 0}, ElementType::f32);
};

using Four = std::array<float, 4>;

}  // namespace

TEST_CASE("the parts of a push are read, and applied in their order") {
  Table table;
  const Four ones{1, 1, 1, 1};
  const std::array<float, 2> row{2, 3};
  const std::vector<std::int64_t> last{1};
  const PushRequest request = std::move(PushRequest{}
                                            .dense(1, dist::sum, std::span{ones})
                                            .rows(1, dist::sum, last, std::span{row}, dist::server::Repeats::summed)
                                            .uniform(1, dist::max, 2.0F));
  const auto parts = table.parts_of(request);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].shard == table.shard);
  CHECK(parts[0].head.form == detail::Form::dense);
  CHECK(parts[1].rows == last);
  CHECK(detail::apply_all(parts) == std::vector<Pushed>{{1, 0}, {2, 0}, {3, 0}});
  Four now{};
  const PullRequest pull = std::move(PullRequest{}.dense(1, std::span{now}));
  CHECK(detail::copy(table.part_of(pull), pull.room(0).data()) == 3);
  CHECK(now == Four{2, 2, 3, 4});
}

TEST_CASE("a push of which one part cannot be applied changes nothing") {
  Table table;
  const Four ones{1, 1, 1, 1};
  const std::vector<std::int64_t> none{2};
  const PushRequest request =
      std::move(PushRequest{}
                    .dense(1, dist::sum, std::span{ones})
                    .rows(1, dist::sum, none, std::span{ones}.first(2), dist::server::Repeats::in_order));
  const auto parts = table.parts_of(request);
  CHECK(support::what_throws<StoreError>([&] {
          static_cast<void>(detail::apply_all(parts));
        }).starts_with("Shard 'w' (number 1) has no row 2 (it has 2)."));
  CHECK(table.shard->version() == 0);
  CHECK(table.shard->lock().memory().weights_as<float>()[0] == 0.0F);
}

TEST_CASE("a pull copies rows in the order of the request, or nothing that the caller knows") {
  Table table;
  const Four values{1, 2, 3, 4};
  const PushRequest push = std::move(PushRequest{}.dense(1, dist::sum, std::span{values}));
  static_cast<void>(detail::apply_all(table.parts_of(push)));
  Four to{};
  const std::vector<std::int64_t> rows{1, 0};
  const PullRequest pull = std::move(PullRequest{}.rows(1, rows, std::span{to}));
  CHECK(table.part_of(pull).bytes == sizeof to);
  CHECK(detail::copy(table.part_of(pull), pull.room(0).data()) == 1);
  CHECK(to == Four{3, 4, 1, 2});
  const PullRequest again = std::move(PullRequest{}.dense(1, std::span{to}, {.known = 1}));
  const detail::PullPart known = table.part_of(again);
  CHECK(known.is_known);
  CHECK(known.bytes == 0);
  CHECK(detail::copy(known, nullptr) == 1);
}

TEST_CASE("what no client sends is refused") {
  CHECK_NOTHROW(detail::require_known(ElementType::f64));
  CHECK_THROWS_AS(detail::require_known(static_cast<ElementType>(200)), ArchiveError);
  const Table table;
  const Shard bools{table.shards.memory(), {2, "b", 2, 1, 0}, ElementType::boolean};
  const std::array<std::byte, 2> good{std::byte{0}, std::byte{1}}, bad{std::byte{1}, std::byte{2}};
  CHECK_NOTHROW(detail::require_values(bools, good));
  CHECK_THROWS_AS(detail::require_values(bools, bad), StoreError);
  CHECK_NOTHROW(detail::require_values(*table.shard, bad));
  const ArchiveError error{"A list is too long", "it has 9 entries", ""};
  CHECK(detail::malformed(error).problem() == Problem::malformed);
  CHECK(std::string{detail::malformed(error).what()}.find(error.what()) != std::string::npos);
}
