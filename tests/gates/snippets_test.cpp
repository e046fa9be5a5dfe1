#include "gates/snippets.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "gates/files.hpp"
#include "gates/links.hpp"

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

TEST_CASE("a block that equals its region is accepted without indentation and other markers") {
  CHECK(check("# Title\n<!-- snippet: examples/a.cpp#sum -->\n\n```cpp\nint a = 1;\n\nif (a) {\n  "
              "++a;\n}\n```\n") == Sentences{});
  CHECK(check("```sh\ncmake -B build\n```\n") == Sentences{});
}

TEST_CASE("a block of CMake code is accepted with comments that start with #") {
  const auto read = [](const std::string&) {
    return std::optional<std::string>{"# [fetch]\nproject(a)\n# [/fetch]\n"};
  };
  const std::string page = "<!-- snippet: CMakeLists.txt#fetch -->\n```cmake\nproject(a)\n```\n";
  CHECK(gates::snippet_violations(page, read) == Sentences{});
  CHECK(check("```cmake\nproject(a)\n```\n").size() == 1);
}

TEST_CASE("a block without a snippet comment is rejected") {
  CHECK(check("text\n```cpp\nint a;\n```\n") ==
        Sentences{"line 2: a block of code without a comment <!-- snippet: file#name --> above it"});
}

TEST_CASE("a snippet comment applies only to the next block") {
  const std::string good = "<!-- snippet: examples/a.cpp#inner -->\n```cpp\nif (a) {\n  ++a;\n}\n```\n";
  CHECK(check(good + "```cpp\nint a;\n```\n") ==
        Sentences{"line 7: a block of code without a comment <!-- snippet: file#name --> above it"});
  CHECK(check("<!-- snippet: examples/a.cpp#inner -->\ntext\n```cpp\nif (a) {\n  ++a;\n}\n```\n").size() == 1);
}

TEST_CASE("the message for a different block names the first difference") {
  CHECK(check("<!-- snippet: examples/a.cpp#inner -->\n```cpp\nif (a) {\n  --a;\n}\n```\n") ==
        Sentences{"line 2: the block differs from the snippet examples/a.cpp#inner, which says:   ++a;"});
  CHECK(check("<!-- snippet: examples/a.cpp#inner -->\n```cpp\nif (a) {\n  ++a;\n}\n// more\n```\n") ==
        Sentences{"line 2: the block differs from the snippet examples/a.cpp#inner, which says: (nothing more)"});
}

TEST_CASE("a missing file or region is rejected") {
  CHECK(check("<!-- snippet: examples/b.cpp#sum -->\n```cpp\n```\n") ==
        Sentences{"line 2: the file of the snippet examples/b.cpp#sum cannot be read"});
  CHECK(check("<!-- snippet: examples/a.cpp#product -->\n```cpp\n```\n") ==
        Sentences{"line 2: the region of the snippet examples/a.cpp#product does not exist"});
}

TEST_CASE("links to missing files and headings are rejected") {
  const auto read = [](const std::string& path) -> std::optional<std::string> {
    if (path != "a.md") return std::nullopt;
    return "# A\n## What `run` shares: all, or not?\n";
  };
  CHECK(gates::link_violations("[a](a.md), [b](a.md#what-run-shares-all-or-not), [c](https://a.b/c)\n", read) ==
        Sentences{});
  CHECK(gates::link_violations("# Top\n[a](#top) `[](auto& x) {}` [](auto& x)", read) == Sentences{});
  CHECK(gates::link_violations("[b](b.md) [c](a.md#b) [d](#a)", read) ==
        Sentences{"the link to b.md leads to no file", "the link to a.md#b leads to no heading",
                  "the link to #a leads to no heading"});
}

TEST_CASE("code blocks in this repository's pages come from compiled files, and links are valid") {
  const auto root = gates::source_dir();
  std::map<std::string, std::string> pages{{"README.md", gates::read_file(root / "README.md")}};
  for (const std::string folder : {"benchmarks", "examples", "include", "tests"})
    for (const auto& [path, text] : gates::read_tree(root / folder, {".md"})) pages[folder + "/" + path] = text;
  const auto read_below = [](const std::filesystem::path& folder) {
    return [folder](const std::string& path) -> std::optional<std::string> {
      if (std::filesystem::is_directory(folder / path)) return "";
      if (!std::filesystem::is_regular_file(folder / path)) return std::nullopt;
      return gates::read_file(folder / path);
    };
  };
  int blocks = 0;
  for (const auto& [path, text] : pages) {
    for (const auto& sentence : gates::snippet_violations(text, read_below(root), &blocks))
      FAIL_CHECK(path << ", " << sentence);
    for (const auto& sentence : gates::link_violations(text, read_below((root / path).parent_path())))
      FAIL_CHECK(path << ", " << sentence);
  }
  CHECK(pages.size() >= 4);
  CHECK_MESSAGE(blocks > 0, "no page shows any code");
}
