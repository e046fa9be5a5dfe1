/// Checks that code in a Markdown page comes from a compiled file: each ```cpp and each ```cmake block follows a line
/// `<!-- snippet: path/to/file.cpp#name -->` and equals the text between `// [name]` and `// [/name]` in that file, or
/// between `# [name]` and `# [/name]`, without the common indentation.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace gates {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::string trimmed(const std::string& line) {
  const auto first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t") - first + 1);
}

/// Returns the text of a comment that fills its line: `[sum]` for `// [sum]` and `# [sum]`.
inline std::string comment_of(const std::string& line) {
  const std::string text = trimmed(line);
  for (const std::string start : {"// ", "# "})
    if (text.starts_with(start)) return text.substr(start.size());
  return {};
}

/// Returns the lines between the two markers, without common indentation and markers of other regions; nothing if a
/// marker is missing.
inline std::optional<std::vector<std::string>> region(const std::string& text, const std::string& name) {
  const auto lines = lines_of(text);
  const auto marker = [&](const std::string& wanted) {
    return std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return comment_of(line) == wanted; });
  };
  const auto first = marker("[" + name + "]");
  const auto last = marker("[/" + name + "]");
  if (first == lines.end() || last == lines.end() || last < first) return std::nullopt;
  std::vector<std::string> body;
  for (auto line = first + 1; line != last; ++line) {
    const auto comment = comment_of(*line);
    if (!(comment.starts_with("[") && comment.ends_with("]"))) body.push_back(*line);
  }
  auto indent = std::string::npos;
  for (const auto& line : body) indent = std::min(indent, line.find_first_not_of(' '));
  for (auto& line : body) line = line.size() <= indent ? std::string{} : line.substr(indent);
  return body;
}

/// Returns one message per code block of the page that does not come from a file. `read` returns the text of a file by
/// its path, or nothing. `blocks`, if not null, counts the checked blocks.
inline std::vector<std::string> snippet_violations(
    const std::string& page, const std::function<std::optional<std::string>(const std::string&)>& read,
    int* blocks = nullptr) {
  std::vector<std::string> violations;
  const auto lines = lines_of(page);
  std::string source;  // the last snippet comment, if only empty lines followed it
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto line = trimmed(lines[i]);
    if (line.starts_with("<!-- snippet: ") && line.ends_with(" -->")) {
      source = line.substr(14, line.size() - 18);
      continue;
    }
    if (!line.starts_with("```")) {
      if (!line.empty()) source.clear();
      continue;
    }
    const auto start = i + 1;
    std::vector<std::string> block;
    for (++i; i < lines.size() && !trimmed(lines[i]).starts_with("```"); ++i) block.push_back(lines[i]);
    if (line != "```cpp" && line != "```cmake") {
      source.clear();
      continue;
    }
    if (blocks != nullptr) ++*blocks;
    const auto where = "line " + std::to_string(start) + ": ";
    const auto hash = source.find('#');
    if (hash == std::string::npos) {
      violations.push_back(where + "a block of code without a comment <!-- snippet: file#name --> above it");
    } else if (const auto text = read(source.substr(0, hash)); !text) {
      violations.push_back(where + "the file of the snippet " + source + " cannot be read");
    } else if (const auto expected = region(*text, source.substr(hash + 1)); !expected) {
      violations.push_back(where + "the region of the snippet " + source + " does not exist");
    } else if (*expected != block) {
      const auto differ = std::mismatch(block.begin(), block.end(), expected->begin(), expected->end());
      violations.push_back(where + "the block differs from the snippet " + source +
                           ", which says: " + (differ.second == expected->end() ? "(nothing more)" : *differ.second));
    }
    source.clear();
  }
  return violations;
}

}  // namespace gates
