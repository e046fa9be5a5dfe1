/// Finds code that tests whether an object has a member, instead of using a named concept or constant.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gates {

/// Returns the text with blanks instead of comments and string literals. Lines keep their numbers.
inline std::string code_of(std::string text) {
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (; from < std::min(to, text.size()); ++from)
      if (text[from] != '\n') text[from] = ' ';
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "//") == 0) {
      blank(at, text.find('\n', at));
    } else if (text.compare(at, 2, "/*") == 0) {
      blank(at, text.find("*/", at) + 2);
    } else if (text[at] == '"') {
      std::size_t end = at + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2U : 1U;
      blank(at, end + 1);
      at = end;
    }
  }
  return text;
}

/// Returns the position of `word` in `code` as a whole word, starting at `at`.
inline std::size_t find_word(std::string_view code, std::string_view word, std::size_t at) {
  const auto joins = [&](std::size_t place) {
    return place < code.size() &&
           (code[place] == '_' || (code[place] >= '0' && code[place] <= '9') ||
            (code[place] >= 'a' && code[place] <= 'z') || (code[place] >= 'A' && code[place] <= 'Z'));
  };
  for (at = code.find(word, at); at != std::string_view::npos; at = code.find(word, at + 1))
    if (!joins(at + word.size()) && (at == 0 || !joins(at - 1))) return at;
  return std::string_view::npos;
}

/// Returns the position after the bracket that closes the bracket at `at`.
inline std::size_t behind_bracket(std::string_view code, std::size_t at) {
  int depth = 0;
  for (; at < code.size(); ++at) {
    if (code[at] == '(' || code[at] == '{') ++depth;
    if ((code[at] == ')' || code[at] == '}') && --depth == 0) return at + 1;
  }
  return at;
}

/// True if the `requires` at `at` is a constraint between a function's parameters and its body.
inline bool ends_declaration(std::string_view code, std::size_t at) {
  const std::size_t before = code.find_last_not_of(" \n", at - 1);
  const auto ends_in = [&](std::string_view word) { return code.substr(0, before + 1).ends_with(word); };
  return at > 0 && before != std::string_view::npos && (code[before] == ')' || ends_in("const") || ends_in("noexcept"));
}

/// Returns one message per requires-expression outside the definition of a concept or an inline constant, and per
/// comparison of a type with the types of a group of one.
inline std::vector<std::string> probes(const std::map<std::string, std::string>& headers) {
  std::vector<std::string> found;
  for (const auto& header : headers) {
    const std::string& name = header.first;
    const std::string code = code_of(header.second);
    const auto report = [&](std::size_t at, std::string_view what) {
      const auto line = 1 + std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      found.push_back(name + ":" + std::to_string(line) + std::string(what));
    };
    std::vector<std::pair<std::size_t, std::size_t>> concepts;
    for (const std::string_view definition : {"concept", "inline constexpr bool"})
      for (std::size_t at = find_word(code, definition, 0); at != std::string::npos;) {
        std::size_t end = at;
        while (end < code.size() && code[end] != ';')
          end = code[end] == '(' || code[end] == '{' ? behind_bracket(code, end) : end + 1;
        concepts.emplace_back(at, end);
        at = find_word(code, definition, end);
      }
    for (std::size_t at = find_word(code, "requires", 0); at != std::string::npos;
         at = find_word(code, "requires", at + 1)) {
      const bool defines = std::any_of(concepts.begin(), concepts.end(),
                                       [&](const auto& range) { return range.first < at && at < range.second; });
      std::size_t body = code.find_first_not_of(" \n", at + std::string_view{"requires"}.size());
      if (body < code.size() && code[body] == '(') body = code.find_first_not_of(" \n", behind_bracket(code, body));
      if (!defines && !ends_declaration(code, at) && body < code.size() && code[body] == '{')
        report(at, " asks for a member without a concept that names it");
    }
    for (std::size_t at = code.find("same_as<"); at != std::string::npos; at = code.find("same_as<", at + 1)) {
      const std::string_view arguments = std::string_view{code}.substr(at, code.find_first_of(";{", at) - at);
      if (find_word(arguments, "SelfCollectives", 0) != std::string_view::npos ||
          find_word(arguments, "SelfCommunicator", 0) != std::string_view::npos)
        report(at, " compares with a group of one: the concepts are GroupOfOne and CollectivesOfOne");
    }
  }
  return found;
}

}  // namespace gates
