#include <dist/io/random_access.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <limits>

#include <io/bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::io::RandomAccess;
using dist::io::RandomAccessFile;
using dist::io::RandomAccessMemory;
using dist::io::RangeSource;
using dist_test::Bytes;
using dist_test::bytes;

static_assert(RandomAccess<RandomAccessFile> && RandomAccess<RandomAccessMemory>);
static_assert(!RandomAccess<dist::io::MemorySource>);
static_assert(dist::io::ByteSource<RangeSource<RandomAccessFile>>);

namespace {

/// Reads `count` bytes at `offset`.
Bytes part(const RandomAccess auto& from, std::uint64_t offset, std::size_t count) {
  Bytes buffer(count);
  buffer.resize(from.read_at(offset, buffer));
  return buffer;
}

void check_letters(const RandomAccess auto& letters) {
  CHECK(letters.size() == 5);
  CHECK(part(letters, 0, 5) == bytes("abcde"));
  CHECK(part(letters, 3, 1) == bytes("d"));
  CHECK(part(letters, 3, 9) == bytes("de"));
  CHECK(part(letters, 0, 2) == bytes("ab"));
  CHECK(part(letters, 0, 0).empty());
  CHECK(dist::io::read_text(letters, 9) == "abcde");
  CHECK(dist::io::read_text(letters, 4) == "abcd");
  CHECK(part(letters, 5, 1).empty());
  CHECK(part(letters, std::numeric_limits<std::uint64_t>::max(), 1).empty());

  RangeSource range{letters, 1, 3, "middle"};
  RangeSource other{letters, 4, 100, "end"};
  CHECK(range.name() == "middle");
  CHECK(dist_test::read_all(range, 2) == bytes("bcd"));
  CHECK(dist_test::read_all(other, 2) == bytes("e"));
}

}  // namespace

TEST_CASE("memory and files are read at any offset, and in ranges") {
  const Bytes content = bytes("abcde");
  check_letters(RandomAccessMemory{content});
  support::TemporaryFolder folder;
  const std::string path = folder.write("letters", content);
  check_letters(RandomAccessFile{path});
  CHECK(RandomAccessFile{path}.name() == path);
  CHECK(RandomAccessMemory{content, "x"}.name() == "x");
}

TEST_CASE("a pipe is rejected, because it has no offsets") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK_THROWS_WITH_AS(RandomAccessFile{dist::concat("/proc/self/fd/", ends[0])},
                       doctest::Contains("Give a file, not a pipe"), FileError);
  for (const int end : ends) ::close(end);
}

TEST_CASE("a missing file and a folder are rejected") {
  support::TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(RandomAccessFile{folder.path("x")}, doctest::Contains("cannot be opened"), FileError);
  const RandomAccessFile directory{folder.path()};
  Bytes buffer(1);
  CHECK_THROWS_WITH_AS(static_cast<void>(directory.read_at(0, buffer)), doctest::Contains("Give the path of a file"),
                       FileError);
}
