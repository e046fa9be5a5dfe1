/// Checks that links of a Markdown page to files and headings of this repository are valid.
#pragma once

#include <cctype>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace gates {

/// Returns GitHub's anchor of a heading: lower case, hyphens instead of spaces, no other punctuation.
inline std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (c == ' ')
      anchor += '-';
  }
  return anchor;
}

inline bool has_heading(const std::string& page, const std::string& anchor) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t text = line.find_first_not_of('#');
    if (text != 0 && text != std::string::npos && line[text] == ' ' && anchor_of(line.substr(text + 1)) == anchor)
      return true;
  }
  return false;
}

/// Returns one message per link `[text](target)` whose target does not exist. `read` returns the text of a file by its
/// path relative to the page, an empty text for a folder, or nothing. Addresses with a scheme are skipped.
inline std::vector<std::string> link_violations(
    const std::string& page, const std::function<std::optional<std::string>(const std::string&)>& read) {
  std::vector<std::string> violations;
  for (std::size_t at = page.find("]("); at != std::string::npos; at = page.find("](", at + 2)) {
    const std::size_t end = page.find(')', at);
    if (end == std::string::npos) break;
    const std::string target = page.substr(at + 2, end - at - 2);
    if (target.find("://") != std::string::npos || target.find_first_of(" {\n") != std::string::npos) continue;
    const std::size_t hash = target.find('#');
    const std::string path = target.substr(0, hash);
    const std::optional<std::string> text = path.empty() ? page : read(path);
    if (!text)
      violations.push_back("the link to " + target + " leads to no file");
    else if (hash != std::string::npos && !has_heading(*text, target.substr(hash + 1)))
      violations.push_back("the link to " + target + " leads to no heading");
  }
  return violations;
}

}  // namespace gates
