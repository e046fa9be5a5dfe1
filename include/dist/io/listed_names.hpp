#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <dist/core/text.hpp>

namespace dist::io {

/// What a file holds, for a message that a name is not among them: the first ten names, and how many more there are.
[[nodiscard]] inline std::string listed_names(std::span<const std::string> names) {
  constexpr std::size_t listed = 10;
  if (names.empty()) return "it is empty";
  std::string list = text("it holds ", quoted(names[0]));
  for (std::size_t i = 1; i < names.size() && i < listed; ++i) list += text(", ", quoted(names[i]));
  if (names.size() > listed) list += text(" and ", names.size() - listed, " more");
  return list;
}

}  // namespace dist::io
