#include <dist/server/server_variable.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dist/comm/local_transport.hpp>
#include <dist/server/archive.hpp>

using dist::Local;
using dist::Shape;
using Shard = dist::ServerShard<float, Local>;
using Variable = dist::ServerVariable<float, Local>;

// What its operations do is shown in tests/strategy/parameter_server_test.cpp.

namespace {

std::vector<Shard> two_shards(const Shape& second) {
  std::vector<Shard> shards;
  shards.emplace_back(Shard::Place{0, 7, 1, "table/part_0"}, Shape{3, 2});
  shards.emplace_back(Shard::Place{1, 8, 2, "table/part_1"}, second);
  return shards;
}
Variable sent(const std::vector<std::byte>& bytes) {
  const std::vector<dist::rpc::Piece> pieces{bytes};
  return dist::from_bytes<Variable>(pieces, "A test");
}

}  // namespace

TEST_CASE("a variable travels to other processes as the places of its shards") {
  const Variable variable = sent(dist::to_bytes(Variable{two_shards({2, 2}), "table"}));
  CHECK(variable.name() == "table");
  CHECK(variable.shape() == Shape{5, 2});
  REQUIRE(variable.shards().size() == 2);
  CHECK(variable.shards()[1].place().server == 1);
  CHECK(variable.shards()[1].place().incarnation == 8);
}

TEST_CASE("bytes of shards that do not fit together are refused") {
  dist::ArchiveWriter archive;
  archive.put(std::string{"table"}).put(std::uint32_t{2});
  for (const Shard& shard : two_shards({2, 9})) archive.put(shard);
  CHECK_THROWS_WITH_AS((void)sent(archive.take()), doctest::Contains("no shards that fit together"),
                       dist::ArchiveError);
  CHECK_THROWS_AS((void)sent(dist::ArchiveWriter{}.put(std::string{"table"}).put(std::uint32_t{0}).take()),
                  dist::ArchiveError);
  CHECK_THROWS_AS((void)sent(dist::ArchiveWriter{}.put(std::string{"table"}).put(~std::uint32_t{0}).take()),
                  dist::ArchiveError);
}

TEST_CASE("what a variable keeps goes with it") {
  const auto kept = std::make_shared<int>(1);
  {
    Variable variable{two_shards({2, 2}), "table", kept};
    const Variable moved = std::move(variable);
    CHECK(kept.use_count() == 2);
  }
  CHECK(kept.use_count() == 1);
}
