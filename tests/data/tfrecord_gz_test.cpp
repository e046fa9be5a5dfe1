#include <dist/data/tfrecord_gz.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/gzip_bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::data::tfrecord_gz;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::collect;
using Records = std::vector<std::string>;

TEST_CASE("tfrecord_gz returns the written records, and can be sharded (spec I08)") {
  support::TemporaryFolder folder;
  std::vector<std::string> files;
  for (const std::string name : {"a", "b", "c"}) {
    std::string content;
    dist::io::append_tfrecord(content, name);
    dist::io::append_tfrecord(content, std::string(100'000, name[0]));
    files.push_back(folder.write(name, dist_test::gzip(bytes(content))));
  }
  const auto dataset = tfrecord_gz(files);
  const auto records = collect(dataset);
  REQUIRE(records.size() == 6);
  CHECK(records[2] == "b");
  CHECK(records[5] == std::string(100'000, 'c'));
  CHECK(collect(dataset.shard_files(3, 1)) == Records{"b", std::string(100'000, 'b')});
  CHECK(collect(tfrecord_gz(files[0])).size() == 2);
}

TEST_CASE("a truncated gzip file is rejected, even if its records are complete") {
  support::TemporaryFolder folder;
  std::string content;
  dist::io::append_tfrecord(content, "record");
  const Bytes compressed = dist_test::gzip(bytes(content));
  CHECK_THROWS_WITH_AS(collect(tfrecord_gz(folder.write("plain", bytes(content)))),
                       doctest::Contains("not a gzip file"), FileError);
  const Bytes cut(compressed.begin(), compressed.end() - 3);  // in the checksum
  CHECK_THROWS_WITH_AS(collect(tfrecord_gz(folder.write("cut", cut))), doctest::Contains("is truncated"), FileError);
}
