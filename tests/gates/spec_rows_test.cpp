#include "gates/spec_rows.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "gates/files.hpp"

namespace {

using Rows = std::set<std::string>;
using Sentences = std::vector<std::string>;

/// Sections A to I, M, P and R, and what O says of synchronous training, as far as they are in the plan of this library.
Rows all_rows() {
  Rows rows;
  const auto add = [&](char section, int first, int last) {
    for (int row = first; row <= last; ++row)
      rows.insert(std::string(1, section) + (row < 10 ? "0" : "") + std::to_string(row));
  };
  add('A', 1, 30);
  add('B', 1, 18);
  add('C', 1, 22);
  add('D', 1, 15);
  add('E', 1, 12);
  add('F', 1, 10);
  add('G', 1, 11);
  add('G', 20, 31);
  add('G', 40, 45);
  add('H', 1, 27);
  add('I', 1, 33);
  add('M', 1, 25);
  add('O', 1, 2);
  add('P', 1, 24);
  rows.insert("R04");
  rows.insert("R08");
  return rows;
}

}  // namespace

TEST_CASE("rows are found as words of their own") {
  CHECK(gates::rows_named_in("reads (spec B03, C15), XB04, B055, b06; D01.") == Rows{"B03", "C15", "D01"});
  CHECK(gates::rows_named_in("E06") == Rows{"E06"});
}

TEST_CASE("the list of rows without a test is a table under its heading") {
  const std::string page =
      "# A\n| B01 | not here |\n## Rows\n\n| row | why |\n|---|---|\n| A07 to A09, B13 | later |\n# C\n| C01 | no |\n";
  const auto argued = gates::argued_rows(page, "## Rows");
  Rows rows;
  for (const auto& [row, reason] : argued) rows.insert(row);
  CHECK(rows == Rows{"A07", "A08", "A09", "B13"});
  CHECK(argued.at("A08") == " later |");
  CHECK(gates::argued_rows(page, "## Nothing").empty());
}

TEST_CASE("each row is shown or argued away, and not both") {
  CHECK(gates::row_violations({"A01", "A02"}, {"A01"}, {{"A02", "why"}}) == Sentences{});
  CHECK(gates::row_violations({"A01"}, {}, {}) ==
        Sentences{"row A01 is named by no test, and has no reason in the list of rows without one"});
  CHECK(gates::row_violations({"A01"}, {"A01"}, {{"A01", "why"}}) ==
        Sentences{"row A01 is in the list of rows without a test, and a test names it"});
  CHECK(gates::row_violations({}, {}, {{"Z01", "why"}}) ==
        Sentences{"row Z01 of the list is not one of the specification's"});
}

TEST_CASE("the rows of the specification are shown by tests or argued away in the map of the house") {
  Rows shown;
  for (const auto& [path, text] : gates::read_tree(gates::source_dir() / "tests", {"_test.cpp", ".hpp", ".cpp"}))
    if (path.compare(0, 6, "gates/") != 0) shown.merge(gates::rows_named_in(text));
  const auto argued = gates::argued_rows(gates::read_file(gates::source_dir() / "include/dist/README.md"),
                                         "## Rows of tf.distribute without a test");
  for (const std::string& sentence : gates::row_violations(all_rows(), shown, argued)) FAIL_CHECK(sentence);
}
