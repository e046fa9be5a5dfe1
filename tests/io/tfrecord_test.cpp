#include <dist/io/tfrecord.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include <io/bytes.hpp>
#include <support/allocations.hpp>

using dist::FileError;
using dist::io::append_tfrecord;
using dist::io::MemorySource;
using dist::io::TfRecordReader;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::joined;

namespace {

Bytes file_of(const std::vector<std::string>& records) {
  std::string file;
  for (const std::string& record : records) append_tfrecord(file, record);
  return bytes(file);
}
template <class Source>
std::vector<std::string> all_of(TfRecordReader<Source>& reader) {
  std::vector<std::string> all;
  std::string record;
  while (reader.next(record)) all.push_back(record);
  CHECK_FALSE(reader.next(record));
  return all;
}
std::vector<std::string> read(const Bytes& content, std::size_t max_bytes = 1'000'000) {
  TfRecordReader reader{MemorySource{content, "file.rec"}, max_bytes};
  return all_of(reader);
}
void refuse(const Bytes& content, const char* because, std::size_t max_bytes = 1'000'000) {
  CHECK_THROWS_WITH_AS(static_cast<void>(read(content, max_bytes)), doctest::Contains(because), FileError);
}
/// Flips bit 0 of the byte at `place`.
Bytes flipped(Bytes content, std::size_t place) {
  content.at(place) ^= std::byte{1};
  return content;
}

const Bytes two = file_of({"first", "second"});  // 12 + 5 + 4 bytes, then 12 + 6 + 4

}  // namespace

TEST_CASE("a record consists of the length, its checksum, the bytes, their checksum") {
  // The CRC-32C of eight zero bytes is 0x8C28B28A, its mask (crc >> 15 | crc << 17) + 0xA282EAD8 is 0x07980329. The
  // checksum of an empty record is 0, its mask 0xA282EAD8.
  const Bytes empty_record = bytes({0, 0, 0, 0, 0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07, 0xD8, 0xEA, 0x82, 0xA2});
  CHECK(file_of({""}) == empty_record);
  CHECK(read(empty_record) == std::vector<std::string>{""});
  CHECK(read({}).empty());
}

TEST_CASE("records are read in order, for any length and any size of reads") {
  std::vector<std::string> records;
  for (const std::size_t length : {0U, 1U, 7U, 65'535U, 65'536U, 65'537U, 300'000U, 3U})
    records.push_back(std::string(length, static_cast<char>('a' + length % 26)));
  const Bytes content = file_of(records);
  CHECK(read(content) == records);
  CHECK(read(two) == std::vector<std::string>{"first", "second"});
  TfRecordReader trickling{dist_test::Trickle{MemorySource{content}, 1000}};
  CHECK(all_of(trickling) == records);
  TfRecordReader single{dist_test::Trickle{MemorySource{two}, 1}};
  CHECK(all_of(single) == std::vector<std::string>{"first", "second"});
}

TEST_CASE("a truncated file is rejected unless it ends between records") {
  for (std::size_t length = 0; length < two.size(); ++length) {
    CAPTURE(length);
    const Bytes cut(two.begin(), two.begin() + static_cast<std::ptrdiff_t>(length));
    if (length == 0 || length == 21)
      CHECK(read(cut).size() == length / 21);
    else
      CHECK_THROWS_AS(static_cast<void>(read(cut)), FileError);
  }
  const auto cut = [](std::size_t length) {
    return Bytes(two.begin(), two.begin() + static_cast<std::ptrdiff_t>(length));
  };
  refuse(cut(24), "File 'file.rec' is truncated in record 1, at byte 21 (its header has 3 bytes, expected 12)");
  refuse(cut(35), "record 1, at byte 21 (its data has 2 bytes, expected 6)");
  refuse(cut(20), "record 0, at byte 0 (its checksum has 3 bytes, expected 4)");
}

TEST_CASE("a flipped bit is detected anywhere") {
  for (std::size_t place = 0; place < two.size(); ++place) {
    CAPTURE(place);
    CHECK_THROWS_AS(static_cast<void>(read(flipped(two, place))), FileError);
  }
  refuse(flipped(two, 3), "is not a TFRecord file (the checksum of the first record's length does not match it)");
  refuse(flipped(two, 21), "is corrupt in record 1, at byte 21 (the checksum of its length does not match it)");
  refuse(flipped(two, 34), "is corrupt in record 1, at byte 21 (the checksum of its bytes does not match them)");
  refuse(joined({two, Bytes(12)}), "record 2, at byte 43 (the checksum of its length");
  refuse(bytes({0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0}), "read it with tfrecord_gz");
}

TEST_CASE("records above the limit, and wrong lengths, are rejected") {
  CHECK(read(two, 6).size() == 2);
  refuse(two, "has a record that is too long: record 1, at byte 21 (6 bytes, at most 5 are read). Raise max_bytes", 5);
  // A length of 2^40 with a matching checksum, and no data.
  std::byte length[8] = {};
  length[5] = std::byte{1};
  const std::uint32_t checksum = dist::io::crc32c(length);
  std::byte masked[4];
  dist::io::store_little_endian((checksum >> 15 | checksum << 17) + 0xA282EAD8U, masked);
  Bytes hostile(length, length + 8);
  hostile.insert(hostile.end(), masked, masked + 4);
  refuse(hostile, "its data has 0 bytes, expected 1099511627776", static_cast<std::size_t>(-1));
}

TEST_CASE("the reader reuses the record's memory") {
  const Bytes content = file_of(std::vector<std::string>(10, std::string(1000, 'x')));
  TfRecordReader reader{MemorySource{content}};
  std::string record;
  REQUIRE(reader.next(record));
  const std::size_t before = allocations;
  int more = 0;
  while (reader.next(record)) ++more;
  CHECK(allocations == before);
  CHECK(more == 9);
}
