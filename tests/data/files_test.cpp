#include <dist/data/files.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/auto_shard.hpp>
#include <dist/data/cache.hpp>
#include <dist/data/interleave.hpp>
#include <dist/data/tfrecord.hpp>
#include <io/bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::InvalidArgument;
using dist::data::auto_shard;
using dist::data::AutoShardPolicy;
using dist::data::Cardinality;
using dist::data::files;
using dist_test::collect;
using Paths = std::vector<std::string>;

static_assert(dist::data::ShardableByFile<dist::data::FilesDataset>);
static_assert(dist::data::ShardableByFile<decltype(dist::data::tfrecord(""))>);

TEST_CASE("files returns the paths of the list in order") {
  const auto dataset = files({"a", "b", "c"});
  CHECK(dataset.cardinality() == Cardinality::known(3));
  CHECK(collect(dataset) == Paths{"a", "b", "c"});
  CHECK(collect(dataset, 1) == Paths{"a", "b", "c"});
  CHECK(collect(files({})).empty());
}

TEST_CASE("a shard has every n-th file (spec I08)") {
  const auto dataset = files({"a", "b", "c", "d", "e"});
  CHECK(collect(dataset.shard_files(2, 0)) == Paths{"a", "c", "e"});
  CHECK(collect(dataset.shard_files(2, 1)) == Paths{"b", "d"});
  CHECK(dataset.shard_files(5, 4).num_files() == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(dataset.shard_files(6, 0)),
                       doctest::Contains("There are fewer files than shards (5 files, 6 shards)"), InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(dataset.shard_files(5, 5)), doctest::Contains("shard 5 of 5"),
                       InvalidArgument);
}

TEST_CASE("auto-sharding divides files for interleave, and files before a cache (spec I08, I10)") {
  support::TemporaryFolder folder;
  Paths paths;
  for (const std::string name : {"a", "b", "c", "d"}) {
    std::string content;
    for (const char digit : {'0', '1'}) dist::io::append_tfrecord(content, name + digit);
    paths.push_back(folder.write(name, dist_test::bytes(content)));
  }
  const auto read = [](const std::string& path) { return dist::data::tfrecord(path); };
  const auto records = files(paths) | dist::data::interleave(read, 2);
  CHECK(collect(records) == Paths{"a0", "b0", "a1", "b1", "c0", "d0", "c1", "d1"});
  CHECK(collect(auto_shard(records, AutoShardPolicy::file, 2, 1)) == Paths{"b0", "d0", "b1", "d1"});

  const auto cached = dist::data::tfrecord(paths) | dist::data::cache();
  CHECK(collect(cached).size() == 8);
  CHECK(collect(auto_shard(cached, AutoShardPolicy::automatic, 4, 2)) == Paths{"c0", "c1"});
  CHECK(collect(cached).size() == 8);  // the caller's dataset is unchanged
}

TEST_CASE("with fewer files than workers, FILE is rejected, and AUTO shards by element (spec I08, I10)") {
  const support::TemporaryFolder folder;
  Paths paths;
  for (const std::string name : {"a", "b"}) {
    std::string content;
    for (const char digit : {'0', '1', '2'}) dist::io::append_tfrecord(content, name + digit);
    paths.push_back(folder.write(name, dist_test::bytes(content)));
  }
  const auto read = [](const std::string& path) { return dist::data::tfrecord(path); };
  const auto interleaved = files(paths) | dist::data::interleave(read, 2);
  const auto cached = dist::data::tfrecord(paths) | dist::data::cache();
  CHECK_THROWS_AS(static_cast<void>(auto_shard(interleaved, AutoShardPolicy::file, 3, 0)), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(auto_shard(cached, AutoShardPolicy::file, 3, 0)), InvalidArgument);
  CHECK(collect(interleaved) == Paths{"a0", "b0", "a1", "b1", "a2", "b2"});
  CHECK(collect(auto_shard(interleaved, AutoShardPolicy::automatic, 3, 1)) == Paths{"b0", "a2"});
  CHECK(collect(auto_shard(cached, AutoShardPolicy::automatic, 3, 2)) == Paths{"a2", "b2"});
}
