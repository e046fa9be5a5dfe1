// No header uses a name that 0.3 replaced. tests/gates/vocabulary.txt lists old and new names.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "gates/files.hpp"
#include "gates/probes.hpp"

TEST_CASE("code uses no old name of the vocabulary and every new one") {
  const auto headers = gates::read_tree(gates::source_dir() / "include/dist", {".hpp", ".ipp", ".cuh"});
  REQUIRE(!headers.empty());
  std::map<std::string, std::string> code;
  for (const auto& [header, text] : headers) code[header] = gates::code_of(text);

  std::istringstream table{gates::read_file(gates::source_dir() / "tests/gates/vocabulary.txt")};
  std::size_t names = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream row{line};
    std::string scope, old_name, new_name, alias;
    row >> scope >> old_name >> new_name >> alias;
    REQUIRE(!new_name.empty());
    ++names;
    bool is_used = false;
    for (const auto& [header, text] : code) {
      if (scope != "*" && !header.starts_with(scope)) continue;
      is_used = is_used || gates::find_word(text, new_name, 0) != std::string::npos;
      if (header != alias && gates::find_word(text, old_name, 0) != std::string::npos)
        FAIL_CHECK(header << " has " << old_name << ": the name is " << new_name);
    }
    if (!is_used) FAIL_CHECK("no header of " << scope << " has " << new_name << ", the new name of " << old_name);
  }
  CHECK(names > 100);
}
