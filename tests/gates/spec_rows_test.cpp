#include "gates/spec_rows.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "gates/files.hpp"

namespace {

using Rows = std::set<std::string>;
using Sentences = std::vector<std::string>;

const std::string without_test = "## Rows without a test";

std::string spec() { return gates::read_file(gates::source_dir() / "tests/spec.md"); }

/// Returns the rows that the specification describes above the list of rows without a test.
Rows all_rows() {
  const std::string page = spec();
  return gates::described_rows(page.substr(0, page.find(without_test)));
}

/// Returns the files of a folder in which rows are cited. Tests of gates are excluded because they use invented rows.
std::map<std::string, std::string> citing_files(const std::string& folder) {
  auto files = gates::read_tree(gates::source_dir() / folder, {".hpp", ".cpp", ".cuh", ".ipp"});
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("gates/"); });
  return files;
}

}  // namespace

TEST_CASE("rows are found as whole words") {
  CHECK(gates::rows_named_in("reads (spec B03, C15), XB04, B055, b06; D01.") == Rows{"B03", "C15", "D01"});
  CHECK(gates::rows_named_in("E06") == Rows{"E06"});
  CHECK(gates::rows_named_in("elements of type F32 or I64 (spec F01)") == Rows{"F01"});
}

TEST_CASE("a page describes rows that are alone in the first cell of a line") {
  CHECK(gates::described_rows("| row | what |\n|---|---|\n| B01 | one B02 |\n| B03, B04 | two |\n|C01| no |\nC02\n") ==
        Rows{"B01"});
}

TEST_CASE("the list of rows without a test is a table below its heading") {
  const std::string page =
      "# A\n| B01 | not here |\n## Rows\n\n| row | why |\n|---|---|\n| A07 to A09, B13 | later |\n# C\n| C01 | no |\n";
  const auto argued = gates::argued_rows(page, "## Rows");
  Rows rows;
  for (const auto& [row, reason] : argued) rows.insert(row);
  CHECK(rows == Rows{"A07", "A08", "A09", "B13"});
  CHECK(argued.at("A08") == " later |");
  CHECK(gates::argued_rows(page, "## Nothing").empty());
}

TEST_CASE("each row has either a test or a reason") {
  CHECK(gates::row_violations({"A01", "A02"}, {"A01"}, {{"A02", "why"}}) == Sentences{});
  CHECK(gates::row_violations({"A01"}, {}, {}) ==
        Sentences{"row A01 is named by no test, and has no reason in the list of rows without one"});
  CHECK(gates::row_violations({"A01"}, {"A01"}, {{"A01", "why"}}) ==
        Sentences{"row A01 is in the list of rows without a test, and a test names it"});
  CHECK(gates::row_violations({}, {}, {{"Z01", "why"}}) ==
        Sentences{"row Z01 of the list is not one of the specification's"});
}

TEST_CASE("cited rows that do not exist are rejected") {
  CHECK(gates::citation_violations({"A01", "B02"}, "a.hpp", "(spec A01, B02)") == Sentences{});
  CHECK(gates::citation_violations({"A01"}, "a.hpp", "(spec A01,\n/// B02)") ==
        Sentences{"a.hpp names row B02, which tests/spec.md does not have"});
}

TEST_CASE("every row of tests/spec.md has a test or is listed among rows without one") {
  const Rows all = all_rows();
  CHECK(all.size() > 200);
  Rows shown;
  for (const auto& [path, text] : citing_files("tests")) shown.merge(gates::rows_named_in(text));
  for (const std::string& sentence : gates::row_violations(all, shown, gates::argued_rows(spec(), without_test)))
    FAIL_CHECK(sentence);
}

TEST_CASE("every row that code and tests cite is in tests/spec.md") {
  const Rows all = all_rows();
  for (const std::string folder : {"include", "tests", "examples", "benchmarks"})
    for (const auto& [path, text] : citing_files(folder))
      for (const std::string& sentence : gates::citation_violations(all, folder + "/" + path, text))
        FAIL_CHECK(sentence);
}
