#include <dist/checkpoint/manifest.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::detail::describe_shard;
using dist::detail::shard_name;
using dist::detail::ShardFile;
using dist::detail::Snapshot;

TEST_CASE("the name of a file contains the save and the process") {
  CHECK(shard_name(0x1b2c3d, 1, 4) == "data-00000000001b2c3d-00001-of-00004.safetensors");
  CHECK(shard_name(0x0123456789abcdef, 123'456, 1'000'000) == "data-0123456789abcdef-123456-of-1000000.safetensors");
}

TEST_CASE("a file of tensors is a safetensors file with the checksum of each") {
  const support::TemporaryFolder folder;
  Snapshot snapshot{0, 1};
  dist::Tensor<std::uint8_t> digits{{9}};
  for (std::size_t i = 0; i < 9; ++i) digits[i] = static_cast<std::uint8_t>('1' + i);
  snapshot.put("digits", digits);
  snapshot.put("none", dist::Tensor<float>{{0, 4}});
  snapshot.put_number("epoch", 3);
  write_shard(folder.path("a"), snapshot);
  const dist::io::Safetensors file{folder.path("a")};
  CHECK(file.entries().size() == 3);
  CHECK(file.read<std::uint8_t>("digits")[8] == '9');
  CHECK(file.read<int>("epoch")[0] == 3);
  CHECK(file.metadata().at("crc32c digits") == "e3069283");  // the check value in the catalogue of CRC algorithms
  CHECK(file.metadata().at("crc32c none") == "00000000");

  const ShardFile described = describe_shard(folder.path(), "a");
  CHECK(described.name == "a");
  CHECK(described.bytes == folder.read("a").size());
  const std::string all = folder.read("a");
  const std::size_t head = static_cast<std::size_t>(file.find("digits")->offset);  // the first tensor
  CHECK(described.header_checksum == dist::detail::checksum_of(all.substr(0, head)));
}

TEST_CASE("a process without tensors writes a file without tensors") {
  const support::TemporaryFolder folder;
  write_shard(folder.path("a"), Snapshot{1, 2});
  CHECK(dist::io::Safetensors{folder.path("a")}.entries().empty());
}

TEST_CASE("describing an invalid file is safe") {
  const support::TemporaryFolder folder;
  folder.write("short", "abc");
  CHECK(describe_shard(folder.path(), "short").bytes == 3);
  folder.write("empty", "");
  CHECK(describe_shard(folder.path(), "empty").bytes == 0);
  folder.write("huge", std::string(8, '\xff'));
  CHECK(describe_shard(folder.path(), "huge").bytes == 8);
  CHECK(support::what_throws<dist::FileError>([&] {
          static_cast<void>(describe_shard(folder.path(), "gone"));
        }).starts_with("File '" + folder.path("gone") + "' cannot be opened"));
}
