/// Finds which rows of tests/spec.md have a test, and which have a reason to have none. A row is named by its section's
/// letter and two digits, such as B09.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace gates {

/// Returns the rows that a text names. `E06 to E09` names these two only. Names of number types, such as F32, are
/// ignored.
inline std::set<std::string> rows_named_in(const std::string& text) {
  const auto is_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  const auto is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  std::set<std::string> rows;
  for (std::size_t at = 0; at + 2 < text.size(); ++at) {
    const bool letter = text[at] >= 'A' && text[at] <= 'R';
    if (letter && is_digit(at + 1) && is_digit(at + 2) && !is_word(at + 3) && (at == 0 || !is_word(at - 1)))
      rows.insert(text.substr(at, 3));
  }
  for (const char* type : {"F16", "F32", "F64", "I64", "C64"}) rows.erase(type);
  return rows;
}

/// Returns the rows that a page describes: those alone in the first cell of a table line, `| B09 | description |`.
inline std::set<std::string> described_rows(const std::string& page) {
  std::set<std::string> rows;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    if (line.size() > 8 && line.compare(0, 2, "| ") == 0 && line.compare(5, 3, " | ") == 0)
      rows.merge(rows_named_in(line.substr(2, 3)));
  return rows;
}

/// Returns the rows in the first cells of a Markdown table, `| A22, J01 | reason |`, with their reasons. `A07 to A17`
/// is a range.
inline std::map<std::string, std::string> argued_rows(const std::string& page, const std::string& heading) {
  std::map<std::string, std::string> argued;
  std::istringstream lines(page.substr(std::min(page.find(heading), page.size())));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.compare(0, 1, "#") != 0) {
    const std::size_t end = line.find('|', 1);
    if (line.compare(0, 1, "|") != 0 || end == std::string::npos) continue;
    const std::string reason = line.substr(end + 1);
    const std::string cell = line.substr(1, end - 1);
    std::string last;
    for (std::size_t at = 0; at + 2 < cell.size(); ++at) {
      const std::set<std::string> here = rows_named_in(cell.substr(at, 3));
      if (here.empty()) continue;
      const std::string row = *here.begin();
      const bool range = !last.empty() && cell.compare(at - 4, 4, " to ") == 0 && last[0] == row[0];
      for (int number = range ? std::stoi(last.substr(1)) + 1 : std::stoi(row.substr(1));
           number <= std::stoi(row.substr(1)); ++number)
        argued[std::string(1, row[0]) + (number < 10 ? "0" : "") + std::to_string(number)] = reason;
      last = row;
      at += 2;
    }
  }
  return argued;
}

/// Returns one message per row that has neither a test nor a reason, or both, or is not in the specification. `shown`
/// has the rows that tests name.
inline std::vector<std::string> row_violations(const std::set<std::string>& all, const std::set<std::string>& shown,
                                               const std::map<std::string, std::string>& argued) {
  std::vector<std::string> sentences;
  for (const std::string& row : all) {
    if (!shown.contains(row) && !argued.contains(row))
      sentences.push_back("row " + row + " is named by no test, and has no reason in the list of rows without one");
    if (shown.contains(row) && argued.contains(row))
      sentences.push_back("row " + row + " is in the list of rows without a test, and a test names it");
  }
  for (const auto& [row, reason] : argued)
    if (!all.contains(row)) sentences.push_back("row " + row + " of the list is not one of the specification's");
  return sentences;
}

/// Returns one message per row that a file names and the specification does not have.
inline std::vector<std::string> citation_violations(const std::set<std::string>& all, const std::string& path,
                                                    const std::string& text) {
  std::vector<std::string> sentences;
  for (const std::string& row : rows_named_in(text))
    if (!all.contains(row)) sentences.push_back(path + " names row " + row + ", which tests/spec.md does not have");
  return sentences;
}

}  // namespace gates
