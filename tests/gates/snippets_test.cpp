#include "gates/snippets.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "gates/files.hpp"

namespace {

using Sentences = std::vector<std::string>;

const std::string program =
    "int main() {\n  // [sum]\n  int a = 1;\n\n  // [inner]\n  if (a) {\n    ++a;\n  }\n  // [/inner]\n  // "
    "[/sum]\n}\n";

std::optional<std::string> read_program(const std::string& path) {
  if (path != "examples/a.cpp") return std::nullopt;
  return program;
}

Sentences check(const std::string& page) { return gates::snippet_violations(page, read_program); }

}  // namespace

TEST_CASE("a block that equals its region, less indentation and other markers") {
  CHECK(check("# Title\n<!-- snippet: examples/a.cpp#sum -->\n\n```cpp\nint a = 1;\n\nif (a) {\n  "
              "++a;\n}\n```\n") == Sentences{});
  CHECK(check("```sh\ncmake -B build\n```\n") == Sentences{});
}

TEST_CASE("a block without a comment") {
  CHECK(check("text\n```cpp\nint a;\n```\n") ==
        Sentences{"line 2: a cpp block without a comment <!-- snippet: file#name --> above it"});
}

TEST_CASE("a comment serves the next block only") {
  const std::string good = "<!-- snippet: examples/a.cpp#inner -->\n```cpp\nif (a) {\n  ++a;\n}\n```\n";
  CHECK(check(good + "```cpp\nint a;\n```\n") ==
        Sentences{"line 7: a cpp block without a comment <!-- snippet: file#name --> above it"});
  CHECK(check("<!-- snippet: examples/a.cpp#inner -->\ntext\n```cpp\nif (a) {\n  ++a;\n}\n```\n").size() == 1);
}

TEST_CASE("a block that differs says where") {
  CHECK(check("<!-- snippet: examples/a.cpp#inner -->\n```cpp\nif (a) {\n  --a;\n}\n```\n") ==
        Sentences{"line 2: the block differs from the snippet examples/a.cpp#inner, which says:   ++a;"});
  CHECK(check("<!-- snippet: examples/a.cpp#inner -->\n```cpp\nif (a) {\n  ++a;\n}\n// more\n```\n") ==
        Sentences{"line 2: the block differs from the snippet examples/a.cpp#inner, which says: (nothing more)"});
}

TEST_CASE("a file or a region that is not there") {
  CHECK(check("<!-- snippet: examples/b.cpp#sum -->\n```cpp\n```\n") ==
        Sentences{"line 2: the file of the snippet examples/b.cpp#sum cannot be read"});
  CHECK(check("<!-- snippet: examples/a.cpp#product -->\n```cpp\n```\n") ==
        Sentences{"line 2: the region of the snippet examples/a.cpp#product does not exist"});
}

TEST_CASE("the pages of this repository are cut from compiled files") {
  const auto root = gates::source_dir();
  const auto read = [&](const std::string& path) -> std::optional<std::string> {
    if (!std::filesystem::is_regular_file(root / path)) return std::nullopt;
    return gates::read_file(root / path);
  };
  int blocks = 0;
  for (const std::string page : {"README.md", "include/dist/README.md"}) {
    for (const auto& sentence : gates::snippet_violations(gates::read_file(root / page), read, &blocks)) {
      FAIL_CHECK(page << ", " << sentence);
    }
  }
  CHECK_MESSAGE(blocks > 0, "no page shows any code");
}
