#include <dist/io/file.hpp>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <support/temporary_folder.hpp>

using dist::io::folder_names;
using Names = std::vector<std::string>;

TEST_CASE("folder_names returns the names of files and folders, sorted by their bytes") {
  const support::TemporaryFolder folder;
  for (const char* name : {"b", "Z", ".hidden", "a/inside"}) folder.write(name, "");
  const auto fail = [](int) { std::abort(); };
  CHECK(folder_names(folder.path(), fail) == Names{".hidden", "Z", "a", "b"});
  CHECK(folder_names(folder.path("a"), fail) == Names{"inside"});
}

TEST_CASE("folder_names reports unreadable folders, and returns no names") {
  const support::TemporaryFolder folder;
  folder.write("file", "");
  int said = 0;
  const auto fail = [&](int error) { said = error; };
  CHECK(folder_names(folder.path("nowhere"), fail).empty());
  CHECK(said == ENOENT);
  CHECK(folder_names(folder.path("file"), fail).empty());
  CHECK(said == ENOTDIR);
  CHECK_THROWS_AS(static_cast<void>(folder_names(folder.path("file"), [](int error) { throw error; })), int);
}
