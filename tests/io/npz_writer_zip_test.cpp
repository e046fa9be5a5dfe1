#include <dist/io/npz_writer.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/io/npz.hpp>
#include <dist/io/random_access.hpp>

#include <io/bytes.hpp>
#include <io/zip_bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::InvalidArgument;
using dist::io::RandomAccessFile;
using dist::io::ZipArchive;
using dist::io::ZipEntry;
using dist::io::ZipWriter;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::joined;
using dist_test::little_endian;

namespace {

Bytes content_of(const ZipArchive<RandomAccessFile>& archive, const ZipEntry& entry) {
  auto source = archive.open(entry);
  return dist_test::read_all(source);
}
void add(ZipWriter& archive, const std::string& name, const std::string& content) {
  const Bytes all = bytes(content);
  archive.add(name, {std::span<const std::byte>{all}});
}

}  // namespace

// Large writes become holes, to save gigabytes of disk space.
static int holes = 0;
extern "C" ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (count < (std::size_t{8} << 20)) return syscall(SYS_write, descriptor, bytes, count);
  if (lseek(descriptor, static_cast<off_t>(count), SEEK_CUR) < 0) return -1;
  ++holes;
  return static_cast<ssize_t>(count);
}

TEST_CASE("an archive has the bytes specified by APPNOTE") {
  const support::TemporaryFolder folder;
  ZipWriter archive{folder.path("a.zip")};
  const Bytes part = bytes("123456789");
  archive.add("n", {std::span{part}.first(4), std::span{part}.subspan(4)});
  archive.commit();
  // The CRC-32 of "123456789" is CBF43926: the check value of the algorithm.
  const Bytes described = joined({little_endian(20, 2), little_endian(0, 2), little_endian(0, 2), little_endian(0, 2),
                                  little_endian(0x21, 2), little_endian(0xCBF43926, 4), little_endian(9, 4),
                                  little_endian(9, 4), little_endian(1, 2)});
  const Bytes expected = joined({little_endian(0x04034B50, 4),
                                 described,
                                 little_endian(0, 2),
                                 bytes("n"),
                                 part,
                                 little_endian(0x02014B50, 4),
                                 little_endian(0x032D, 2),
                                 described,
                                 little_endian(0, 2),
                                 little_endian(0, 2),
                                 little_endian(0, 2),
                                 little_endian(0, 2),
                                 little_endian(0x81A40000, 4),
                                 little_endian(0, 4),
                                 bytes("n"),
                                 little_endian(0x06054B50, 4),
                                 little_endian(0, 4),
                                 little_endian(1, 2),
                                 little_endian(1, 2),
                                 little_endian(47, 4),
                                 little_endian(40, 4),
                                 little_endian(0, 2)});
  CHECK(bytes(folder.read("a.zip")) == expected);
}

TEST_CASE("non-ASCII names are marked as UTF-8, and an archive may be empty") {
  const support::TemporaryFolder folder;
  ZipWriter archive{folder.path("a.zip")};
  add(archive, "größe", "x");
  archive.commit();
  CHECK(static_cast<unsigned char>(folder.read("a.zip")[7]) == 8);  // bit 11 of the flags
  CHECK(ZipArchive{RandomAccessFile{folder.path("a.zip")}}.find("größe") != nullptr);
  ZipWriter{folder.path("empty.zip")}.commit();
  CHECK(folder.read("empty.zip").size() == 22);
  CHECK(ZipArchive{RandomAccessFile{folder.path("empty.zip")}}.entries().empty());
}

TEST_CASE("invalid names are rejected") {
  const support::TemporaryFolder folder;
  ZipWriter archive{folder.path("a.zip")};
  add(archive, std::string(65'534, 'n'), "x");
  CHECK_THROWS_WITH_AS(add(archive, std::string(65'535, 'n'), "x"),
                       doctest::Contains("(the name has more than 65534 bytes)"), InvalidArgument);
  CHECK_THROWS_WITH_AS(add(archive, std::string(65'534, 'n'), "x"), doctest::Contains("(another file has this name)"),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(add(archive, "", "x"), doctest::Contains("(the name is empty)"), InvalidArgument);
  archive.commit();
  CHECK(ZipArchive{RandomAccessFile{folder.path("a.zip")}}.entries().size() == 1);
}

TEST_CASE("65535 or more files are written as ZIP64") {
  const support::TemporaryFolder folder;
  for (const std::size_t count : {std::size_t{65'534}, std::size_t{65'535}, std::size_t{70'000}}) {
    ZipWriter writer{folder.path("a.zip")};
    for (std::size_t i = 0; i < count; ++i) add(writer, std::to_string(i), "x");
    writer.commit();
    const std::string written = folder.read("a.zip");
    CHECK((written.find("PK\x06\x06") != std::string::npos) == (count > 65'534));
    const ZipArchive archive{RandomAccessFile{folder.path("a.zip")}};
    REQUIRE(archive.entries().size() == count);
    CHECK(content_of(archive, archive.entries()[count - 1]) == bytes("x"));
  }
}

TEST_CASE("4 GiB or more, and the entries after them, are written as ZIP64") {
  constexpr std::uint64_t limit = 0xFFFFFFFF;  // the placeholder for a size stored elsewhere
  void* const zeros = mmap(nullptr, limit + 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(zeros != MAP_FAILED);
  const support::TemporaryFolder folder;
  for (const std::uint64_t size : {limit - 1, limit}) {
    ZipWriter writer{folder.path("a.zip")};
    writer.add("large", {std::span{static_cast<const std::byte*>(zeros), static_cast<std::size_t>(size)}});
    add(writer, "behind", "x");
    writer.commit();
    REQUIRE(holes > 0);
    const ZipArchive archive{RandomAccessFile{folder.path("a.zip")}};
    REQUIRE(archive.entries().size() == 2);
    CHECK(archive.find("large")->size == size);
    CHECK(archive.find("large")->compressed_size == size);
    CHECK(archive.find("behind")->header_offset == 30 + 5 + (size == limit ? 20 : 0) + size);
    CHECK(content_of(archive, *archive.find("behind")) == bytes("x"));
    // A number that equals the placeholder must also be stored elsewhere.
    const RandomAccessFile file{folder.path("a.zip")};
    Bytes tail(400);
    REQUIRE(file.read_at(file.size() - tail.size(), tail) == tail.size());
    const Bytes sizes = joined(
        {bytes("large"), little_endian(1, 2), little_endian(16, 2), little_endian(size, 8), little_endian(size, 8)});
    const Bytes place = joined({bytes("behind"), little_endian(1, 2), little_endian(8, 2),
                                little_endian(archive.find("behind")->header_offset, 8)});
    const auto has = [&](const Bytes& part) {
      return std::search(tail.begin(), tail.end(), part.begin(), part.end()) != tail.end();
    };
    CHECK(has(sizes) == (size == limit));
    CHECK(has(place));
    std::byte end[1];
    auto large = archive.open(*archive.find("large"));
    CHECK(large.read(end) == 1);
  }
  munmap(zeros, limit + 1);
}
