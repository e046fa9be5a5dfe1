#include <doctest/doctest.h>

#include <cctype>
#include <regex>
#include <string>
#include <vector>

#include "gates/files.hpp"

namespace {

using Names = std::vector<std::string>;

/// Returns the matches of the expression's first group in the text, in order.
Names names_in(const std::string& text, const char* expression) {
  const std::regex name(expression);
  Names names;
  for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match)
    names.push_back((*match)[1]);
  return names;
}

/// Returns the names that do not appear on the page as code, after `before`.
Names lacking(const Names& names, const std::string& page, const std::string& before = "") {
  Names lacking;
  for (const std::string& name : names)
    if (page.find('`' + before + name + '`') == std::string::npos) lacking.push_back(name);
  return lacking;
}

std::string text_of(const char* path) { return gates::read_file(gates::source_dir() / path); }

/// Fails for each name that the page at `path` lacks.
void check_named(const Names& names, const char* path, const std::string& before = "") {
  for (const std::string& name : lacking(names, text_of(path), before))
    FAIL_CHECK(std::string(path) << " does not name " << before << name);
}

const char* const option = R"((?:option|set)\(\s*(DIST_[A-Z_]+))";
const char* const preset = R"re("name": "([a-z-]+)")re";

}  // namespace

TEST_CASE("names are found in CMake files and missing names are found on pages") {
  const Names options =
      names_in("dist_option(DIST_A AUTO \"\")\noption(\n  DIST_B_C \"\" ON)\nset(DIST_D \"\")", option);
  CHECK(options == Names{"DIST_A", "DIST_B_C", "DIST_D"});
  CHECK(lacking(options, "`DIST_A` and `DIST_B`, DIST_D") == Names{"DIST_B_C", "DIST_D"});
  CHECK(names_in(R"({ "name": "test", "inherits": "base" })", preset) == Names{"test"});
  CHECK(lacking({"mpi", "png"}, "`dist::mpi`, `png`", "dist::") == Names{"png"});
}

TEST_CASE("examples/headers.md names every option and every component of CMake") {
  Names options = names_in(text_of("CMakeLists.txt"), option);
  CHECK(options.size() > 15);
  const std::string table = text_of("cmake/packages.txt");
  for (std::string name : names_in(table, R"(\n([a-z_]+) \|)")) {
    for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    options.push_back("DIST_" + name);
  }
  CHECK(options.size() > 35);
  check_named(options, "examples/headers.md");
  const Names components = names_in(table, R"(\n([a-z_]+) \| [^|]+ \| [^| ])");
  CHECK(components.size() > 10);
  check_named(components, "examples/headers.md", "dist::");
}

TEST_CASE("tests/README.md names every preset of tests") {
  const std::string presets = text_of("CMakePresets.json");
  Names of_tests = names_in(presets.substr(presets.find("\"testPresets\"")), preset);
  CHECK(of_tests.size() > 5);
  std::erase_if(of_tests,
                [](const std::string& name) { return name == "base" || name == "release" || name == "demo"; });
  check_named(of_tests, "tests/README.md");
}
