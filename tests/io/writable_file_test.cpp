#include <dist/io/writable_file.hpp>

#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include <doctest/doctest.h>

#include <io/bytes.hpp>
#include <support/file_size_limit.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::FileError;
using dist::io::make_folders;
using dist::io::WritableFile;
using dist_test::bytes;

TEST_CASE("bytes are written at their offsets, in any order") {
  const support::TemporaryFolder folder;
  WritableFile file{folder.path("file")};
  file.write_at(3, bytes("def"));
  file.write_at(0, bytes("abc"));
  CHECK(folder.read("file") == "abcdef");
  CHECK(file.truncate(4));
  CHECK(folder.read("file") == "abcd");
  CHECK(file.is_open());
  file.close();
  CHECK_FALSE(file.is_open());
  file.close();
}

TEST_CASE("an existing file is not overwritten") {
  const support::TemporaryFolder folder;
  folder.write("file", "old");
  CHECK(support::what_throws<FileError>([&] {
          WritableFile{folder.path("file")};
        }).starts_with("File '" + folder.path() + "/file' cannot be created (File exists)."));
  CHECK(folder.read("file") == "old");
}

TEST_CASE("a folder that is missing, or is a file, is reported") {
  const support::TemporaryFolder folder;
  folder.write("file", "");
  CHECK_THROWS_WITH_AS(
      WritableFile{folder.path("nowhere/file")},
      doctest::Contains("cannot be created (No such file or directory). Create the folder first, or correct the path."),
      FileError);
  CHECK_THROWS_WITH_AS(make_folders(folder.path("file/below")),
                       doctest::Contains("/file/below' cannot be created as a folder (Not a directory)"), FileError);
  CHECK_THROWS_WITH_AS(make_folders("/proc/nowhere"), doctest::Contains("File '/proc/nowhere' cannot be created"),
                       FileError);
}

TEST_CASE("make_folders creates folders and their parents, which may exist") {
  const support::TemporaryFolder folder;
  make_folders(folder.path("a/b/c/"));
  CHECK(std::filesystem::is_directory(folder.path("a/b/c")));
  make_folders(folder.path("a/b/d"));
  CHECK(std::filesystem::is_directory(folder.path("a/b/d")));
  make_folders("/");
}

TEST_CASE("exceeding the file size limit is an error that names the file") {
  const support::TemporaryFolder folder;
  const WritableFile file{folder.path("file")};
  std::string said;
  {
    const support::FileSizeLimit limit{8};
    said = support::what_throws<FileError>([&] { file.write_at(0, bytes("more than eight bytes")); });
  }
  CHECK(said == "File '" + file.name() +
                    "' cannot be written (File too large). Raise the limit on the size of files (ulimit -f).");
}

TEST_CASE("write_all repeats short and interrupted writes, and reports failures") {
  const auto all = bytes("abcdefgh");
  dist_test::Bytes taken;
  int calls = 0;
  const auto fail = [](int error) { throw error; };
  dist::io::detail::write_all(
      all,
      [&](std::span<const std::byte> rest) -> ssize_t {
        errno = EINTR;
        if (++calls % 2 == 1) return -1;
        const auto part = rest.first(std::min<std::size_t>(rest.size(), 3));
        taken.insert(taken.end(), part.begin(), part.end());
        return static_cast<ssize_t>(part.size());
      },
      fail);
  CHECK(taken == all);
  CHECK(calls == 6);
  const auto error_where_write_gives = [&](ssize_t count) {
    try {
      dist::io::detail::write_all(
          all,
          [&](std::span<const std::byte>) {
            errno = ENOSPC;
            return count;
          },
          fail);
    } catch (int error) {
      return error;
    }
    return 0;
  };
  CHECK(error_where_write_gives(-1) == ENOSPC);
  CHECK(error_where_write_gives(0) == EIO);
}
