#include <dist/io/byte_source.hpp>

#include <doctest/doctest.h>

#include <array>

#include <io/bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::io::ByteSource;
using dist::io::FileSource;
using dist::io::MemorySource;
using dist_test::Bytes;
using dist_test::bytes;

struct Nameless {
  std::size_t read(std::span<std::byte>);
};
struct Signed {
  long read(std::span<std::byte>);
  const std::string& name() const;
};
static_assert(ByteSource<FileSource> && ByteSource<MemorySource> && ByteSource<dist_test::Trickle<MemorySource>>);
static_assert(!ByteSource<Nameless> && !ByteSource<Signed> && !ByteSource<int>);

TEST_CASE("a memory source is read in order to its end") {
  const Bytes content = bytes("abcdefg");
  MemorySource source{content, "letters"};
  std::array<std::byte, 3> buffer{};
  CHECK(source.name() == "letters");
  CHECK(source.read(buffer) == 3);
  CHECK(buffer[2] == std::byte{'c'});
  CHECK(source.read({}) == 0);
  CHECK(source.read(buffer) == 3);
  CHECK(source.read(buffer) == 1);
  CHECK(buffer[0] == std::byte{'g'});
  CHECK(source.read(buffer) == 0);
  CHECK(source.read(buffer) == 0);
}

TEST_CASE("read_full fills the buffer despite short reads") {
  const Bytes content = bytes("abcdefg");
  dist_test::Trickle source{MemorySource{content}, 2};
  Bytes buffer(5);
  CHECK(dist::io::read_full(source, buffer) == 5);
  CHECK(buffer == bytes("abcde"));
  CHECK(dist::io::read_full(source, buffer) == 2);
  CHECK(dist::io::read_full(source, buffer) == 0);
}

TEST_CASE("a file source returns the file's bytes") {
  support::TemporaryFolder folder;
  Bytes content(100'000);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 31 % 251);
  const std::string path = folder.write("data", content);
  FileSource source{path};
  CHECK(source.name() == path);
  CHECK(dist_test::read_all(source, 777) == content);

  FileSource first{path};
  Bytes head(10);
  CHECK(first.read(head) == 10);
  FileSource moved{std::move(first)};
  CHECK(dist_test::read_all(moved) == Bytes(content.begin() + 10, content.end()));
  moved = FileSource{path};
  CHECK(dist_test::read_all(moved) == content);
}

TEST_CASE("missing files, folders and paths through files throw FileError with the system's reason") {
  support::TemporaryFolder folder;
  const std::string missing = folder.path("none");
  CHECK_THROWS_WITH_AS(FileSource{missing},
                       ("File '" + missing +
                        "' cannot be opened (No such file or directory). Check the path, and that "
                        "the file is installed.")
                           .c_str(),
                       FileError);
  const std::string file = folder.write("file", bytes("x"));
  CHECK_THROWS_WITH_AS(FileSource{file + "/below"}, doctest::Contains("Not a directory"), FileError);

  FileSource directory{folder.path()};
  Bytes buffer(4);
  CHECK_THROWS_WITH_AS(static_cast<void>(directory.read(buffer)), doctest::Contains("Is a directory"), FileError);
  try {
    FileSource{missing};
  } catch (const FileError& error) {
    CHECK(error.path() == missing);
  }
}
