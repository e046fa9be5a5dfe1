#include <dist/io/file.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using dist::io::listed_names;

TEST_CASE("listed_names lists ten names at most") {
  std::vector<std::string> names;
  CHECK(listed_names(names) == "it is empty");
  names = {"a"};
  CHECK(listed_names(names) == "it holds 'a'");
  names = {"a", "b\x1b"};
  CHECK(listed_names(names) == "it holds 'a', 'b\\x1b'");
  names.assign(12, "x");
  CHECK(listed_names(names) == "it holds 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x' and 2 more");
}
