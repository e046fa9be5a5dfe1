#include <dist/io/writable_file.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

#include <io/bytes.hpp>
#include <support/file_size_limit.hpp>
#include <support/system_files.hpp>
#include <support/what_throws.hpp>

using dist::FileError;
using dist::io::make_folders;
using dist::io::WritableFile;
using dist_test::bytes;

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

TEST_CASE("bytes are written where they belong, in any order") {
  const SystemFiles folder;
  WritableFile file{folder.root() + "/file"};
  file.write_at(3, bytes("def"));
  file.write_at(0, bytes("abc"));
  CHECK(content_of(file.name()) == "abcdef");
  CHECK(file.truncate(4));
  CHECK(content_of(file.name()) == "abcd");
  CHECK(file.is_open());
  file.close();
  CHECK_FALSE(file.is_open());
  file.close();
}

TEST_CASE("a file that is there is not written over") {
  const SystemFiles folder;
  folder.write("file", "old");
  CHECK(support::what_throws<FileError>([&] {
          WritableFile{folder.root() + "/file"};
        }).starts_with("File '" + folder.root() + "/file' cannot be made (File exists)."));
  CHECK(content_of(folder.root() + "/file") == "old");
}

TEST_CASE("a folder that is missing, or is a file, is named") {
  const SystemFiles folder;
  folder.write("file", "");
  CHECK_THROWS_WITH_AS(
      WritableFile{folder.root() + "/nowhere/file"},
      doctest::Contains("cannot be made (No such file or directory). Make the folder first, or correct the path."),
      FileError);
  CHECK_THROWS_WITH_AS(make_folders(folder.root() + "/file/below"),
                       doctest::Contains("/file/below' cannot be made as a folder (Not a directory)"), FileError);
  CHECK_THROWS_WITH_AS(make_folders("/proc/nowhere"), doctest::Contains("File '/proc/nowhere' cannot be made"),
                       FileError);
}

TEST_CASE("folders are made with those above them, and may be there") {
  const SystemFiles folder;
  make_folders(folder.root() + "/a/b/c/");
  CHECK(std::filesystem::is_directory(folder.root() + "/a/b/c"));
  make_folders(folder.root() + "/a/b/d");
  CHECK(std::filesystem::is_directory(folder.root() + "/a/b/d"));
  make_folders("/");
}

TEST_CASE("a limit on the size of files is an error that names the file") {
  const SystemFiles folder;
  const WritableFile file{folder.root() + "/file"};
  std::string said;
  {
    const support::FileSizeLimit limit{8};
    said = support::what_throws<FileError>([&] { file.write_at(0, bytes("more than eight bytes")); });
  }
  CHECK(said == "File '" + file.name() +
                    "' cannot be written (File too large). Raise the limit on the size of files (ulimit -f).");
}
