#include <dist/server/requests.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

namespace {

namespace rpc = dist::rpc;
namespace server = dist::server;

}  // namespace

TEST_CASE("values and indices are sent from where they lie") {
  const std::vector<float> values(6, 1);
  const std::vector<std::int64_t> rows{1, 2, 1};
  server::PushRequest push;
  push.dense(1, dist::sum, std::span<const float>{values})
      .rows(2, dist::max, rows, std::span<const float>{values}, server::Repeats::in_order);
  CHECK(push.size() == 2);
  const rpc::PieceList pieces = push.pieces();
  REQUIRE(pieces.size() == 5);
  CHECK(pieces[1].data() == reinterpret_cast<const std::byte*>(values.data()));
  CHECK(pieces[1].size() == 24);
  CHECK(pieces[3].data() == reinterpret_cast<const std::byte*>(rows.data()));
  CHECK(pieces[4].data() == pieces[1].data());

  dist::ArchiveReader reader{pieces};
  const auto first = reader.get<server::detail::PushHead>();
  CHECK(first.shard == 1);
  CHECK(first.form == server::detail::Form::dense);
  CHECK(first.bytes == 24);
  CHECK(first.options.version == server::unknown_version);
  CHECK(server::detail::get_update(reader)->type() == dist::io::ElementType::f32);
  static_cast<void>(reader.get_pieces(24));
  const auto second = reader.get<server::detail::PushHead>();
  CHECK(second.rows == 3);
  CHECK(second.form == server::detail::Form::rows_in_order);
}

TEST_CASE("what is pulled goes where the request says") {
  std::vector<float> to(2);
  std::vector<double> rows_to(4);
  const std::vector<std::int64_t> rows{1, 0};
  server::PullRequest pull;
  pull.dense(1, std::span{to}, {.array = 3}).rows(2, rows, std::span{rows_to});
  CHECK(pull.size() == 2);
  CHECK(pull.pieces().size() == 2);
  const std::vector<float> sent{1, 2};
  dist::ArchiveReader reader{std::as_bytes(std::span{sent})};
  pull.take(0, {7, 8}, reader);
  CHECK(to == sent);
  CHECK_THROWS_AS(pull.take(1, {7, 8}, reader), dist::StoreError);
}

TEST_CASE("rows that are not whole are refused before they are sent") {
  const std::vector<std::int64_t> rows{1, 2};
  std::vector<float> three(3);
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          server::PushRequest{}.rows(7, dist::sum, rows, std::span<const float>{three}, server::Repeats::summed);
        }) == "Rows for shard 7 do not fit together (2 indices and 3 values). Give one row of values for each index.");
  CHECK_THROWS_AS((server::PullRequest{}.rows(7, rows, std::span{three})), dist::ShapeMismatch);
  CHECK_THROWS_AS((server::PullRequest{}.rows(7, {}, std::span{three})), dist::ShapeMismatch);
  CHECK_NOTHROW((server::PullRequest{}.rows(7, rows, std::span<float>{})));
}
