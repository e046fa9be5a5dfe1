#include <dist/data/tfrecord.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/take_skip.hpp>
#include <io/bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::InvalidArgument;
using dist::data::Cardinality;
using dist::data::tfrecord;
using dist_test::bytes;
using dist_test::collect;
using Records = std::vector<std::string>;

namespace {

/// Writes a file of these records.
std::string write(support::TemporaryFolder& folder, const std::string& name, const Records& records) {
  std::string content;
  for (const std::string& record : records) dist::io::append_tfrecord(content, record);
  return folder.write(name, bytes(content));
}

}  // namespace

TEST_CASE("tfrecord returns the records file by file, in every pass") {
  support::TemporaryFolder folder;
  const std::string a = write(folder, "a", {"a0", "a1"});
  const std::string none = write(folder, "none", {});
  const std::string b = write(folder, "b", {"b0"});
  const auto dataset = tfrecord({a, none, b});
  CHECK(dataset.cardinality() == Cardinality::unknown());
  CHECK(collect(dataset, 0) == Records{"a0", "a1", "b0"});
  CHECK(collect(dataset, 1) == Records{"a0", "a1", "b0"});
  CHECK(collect(tfrecord(b)) == Records{"b0"});
  CHECK(collect(tfrecord(b.c_str())) == Records{"b0"});
  CHECK(collect(tfrecord({b})) == Records{"b0"});
  const auto sizes = dataset | dist::data::map([](const std::string& record) { return record.size(); }) |
                     dist::data::repeat(2) | dist::data::prefetch(2);
  CHECK(collect(sizes).size() == 6);
}

TEST_CASE("a shard has every n-th file (spec I08)") {
  support::TemporaryFolder folder;
  std::vector<std::string> files;
  for (int i = 0; i < 5; ++i) files.push_back(write(folder, std::to_string(i), {std::to_string(i)}));
  const auto dataset = tfrecord(files);
  CHECK(collect(dataset.shard_files(2, 0)) == Records{"0", "2", "4"});
  CHECK(collect(dataset.shard_files(2, 1)) == Records{"1", "3"});
  CHECK(collect(dataset.shard_files(5, 4)) == Records{"4"});
  CHECK(dataset.shard_files(1, 0).files() == files);
}

TEST_CASE("fewer files than shards, and a shard index out of range, are rejected (spec I08)") {
  const auto dataset = tfrecord({"a", "b"});
  CHECK_THROWS_WITH_AS(static_cast<void>(dataset.shard_files(3, 0)),
                       doctest::Contains("There are fewer files than shards (2 files, 3 shards)"), InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(dataset.shard_files(2, 2)), doctest::Contains("shard 2 of 2"),
                       InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(dataset.shard_files(0, 0)), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(tfrecord(std::vector<std::string>{})), InvalidArgument);
}

TEST_CASE("a missing or corrupt file is rejected when it is read") {
  support::TemporaryFolder folder;
  const std::string good = write(folder, "good", {"one"});
  const auto missing = tfrecord({good, folder.path("missing")});
  auto iterator = missing.iterate(0);
  std::string record;
  CHECK(iterator.next(record));
  CHECK_THROWS_WITH_AS(static_cast<void>(iterator.next(record)), doctest::Contains("/missing' cannot be opened"),
                       FileError);
  const std::string bad = folder.write("bad", bytes("these are not the records"));
  CHECK_THROWS_WITH_AS(collect(tfrecord(bad)), doctest::Contains(("File '" + bad + "' is not a TFRecord").c_str()),
                       FileError);
  CHECK_THROWS_WITH_AS(collect(tfrecord(good, 2)), doctest::Contains("3 bytes, at most 2"), FileError);
}
