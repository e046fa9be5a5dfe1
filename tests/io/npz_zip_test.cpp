#include <dist/io/npz.hpp>

#include <doctest/doctest.h>

#include <string>

#include <io/bytes.hpp>
#include <io/zip_bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::io::RandomAccessFile;
using dist::io::RandomAccessMemory;
using dist::io::ZipArchive;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::joined;
using dist_test::little_endian;
using dist_test::stored;
using dist_test::zip;
using dist_test::ZipKind;

namespace {

ZipArchive<RandomAccessMemory> open(const Bytes& content) {
  return ZipArchive{RandomAccessMemory{content, "file.zip"}};
}
void refuse(const Bytes& content, const char* because) {
  CHECK_THROWS_WITH_AS(static_cast<void>(open(content)), doctest::Contains(because), FileError);
}
Bytes content_of(const ZipArchive<RandomAccessMemory>& archive, const std::string& name) {
  const dist::io::ZipEntry* entry = archive.find(name);
  REQUIRE(entry != nullptr);
  auto source = archive.open(*entry);
  CHECK(source.name() == "file.zip:" + name);
  return dist_test::read_all(source, 3);
}
/// Replaces the bytes of `content` at `place` by `part`.
Bytes patched(Bytes content, std::size_t place, const Bytes& part) {
  for (std::size_t i = 0; i < part.size(); ++i) content.at(place + i) = part[i];
  return content;
}

const Bytes one = zip({stored("a", bytes("hello"))});
constexpr std::size_t end_size = 22;
constexpr std::size_t entry_size = 46 + 1 + 1;

}  // namespace

TEST_CASE("the directory lists the files, which can be read in any order") {
  for (const ZipKind kind : {ZipKind::plain, ZipKind::large}) {
    const Bytes content = zip({stored("first.txt", bytes("hello"), 17), {"b", bytes("zz"), 100, 18, 8, 1}}, kind);
    const auto archive = open(content);
    REQUIRE(archive.entries().size() == 2);
    CHECK(archive.entries()[1].name == "b");
    CHECK(archive.entries()[1].size == 100);
    CHECK(archive.entries()[1].compressed_size == 2);
    CHECK(archive.entries()[1].crc32 == 18);
    CHECK(archive.entries()[1].method == 8);
    CHECK(archive.entries()[1].encrypted);
    CHECK_FALSE(archive.entries()[0].encrypted);
    CHECK(content_of(archive, "b") == bytes("zz"));
    CHECK(content_of(archive, "first.txt") == bytes("hello"));
    CHECK(archive.find("c") == nullptr);
  }
}

TEST_CASE("an archive may be empty, have a comment, and contain two files with one name") {
  const Bytes empty = zip({});
  CHECK(open(empty).entries().empty());
  // The comment resembles the end of an archive, but its lengths do not match.
  const Bytes commented = zip({stored("a", bytes("x"))}, ZipKind::plain, "PK\x05\x06 is not the end of this archive");
  CHECK(content_of(open(commented), "a") == bytes("x"));
  const Bytes twice = zip({stored("a", bytes("old")), stored("a", bytes("new"))});
  CHECK(content_of(open(twice), "a") == bytes("new"));
}

TEST_CASE("files other than archives are rejected") {
  refuse({}, "File 'file.zip' is not a ZIP archive (its 0 bytes have no directory at their end)");
  refuse(bytes("PK\x03\x04 and no more"), "is not a ZIP archive");
  refuse(joined({one, bytes("x")}), "is not a ZIP archive");
  support::TemporaryFolder folder;
  CHECK_THROWS_AS(ZipArchive{RandomAccessFile{folder.path("nowhere")}}, FileError);
}

TEST_CASE("an archive truncated at its end or its start is rejected") {
  for (std::size_t length = 0; length < one.size(); ++length) {
    CAPTURE(length);
    refuse(Bytes(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(length)), "is not a ZIP archive");
  }
  const Bytes headless(one.begin() + 10, one.end());
  CHECK_THROWS_AS(static_cast<void>(open(headless)), FileError);
}

TEST_CASE("inconsistent directories are rejected") {
  const std::size_t end = one.size() - end_size;
  refuse(patched(one, end + 10, little_endian(2, 2)), "its directory has 1 entries, but 2 are announced");
  refuse(patched(one, end + 12, little_endian(1000, 4)), "its directory reaches beyond its end");
  refuse(patched(one, end + 16, little_endian(0xFFFFFFFE, 4)), "its directory reaches beyond its end");
  refuse(patched(one, end + 16, little_endian(0, 4)), "its directory lacks an expected entry");
  refuse(patched(one, end - entry_size + 28, little_endian(9, 2)), "its directory ends inside an entry");
  const Bytes large = zip({stored("a", bytes("hello"))}, ZipKind::large);
  refuse(patched(large, large.size() - end_size - 12, little_endian(1, 8)), "its ZIP64 record is not where");
  refuse(patched(large, large.size() - end_size - 12, little_endian(~std::uint64_t{0}, 8)), "its ZIP64 record");
  refuse(patched(large, large.size() - end_size - 20 - 8, little_endian(~std::uint64_t{0}, 8)),
         "reaches beyond its end");
}

TEST_CASE("entries that are not where the directory says are rejected when opened") {
  const auto refuse_entry = [](const Bytes& content, const char* because) {
    const auto archive = open(content);
    CHECK_THROWS_WITH_AS(static_cast<void>(archive.open(archive.entries().at(0))), doctest::Contains(because),
                         FileError);
  };
  const std::size_t entry = one.size() - end_size - entry_size;
  refuse_entry(patched(one, entry + 42, little_endian(1, 4)), "'a' is not where the directory says");
  refuse_entry(patched(one, entry + 42, little_endian(0xFFFFFFFF, 4)), "'a' is not where the directory says");
  refuse_entry(patched(one, entry + 20, little_endian(1000, 4)), "'a' reaches beyond its end");
  refuse_entry(patched(one, 26, little_endian(0xFFFF, 2)), "'a' reaches beyond its end");
}
