#pragma once

#include <cstddef>
#include <string_view>

namespace dist::detail {

/// The compiler's name of a type, for messages and to tell types of different replicas apart.
template <class T>
[[nodiscard]] constexpr std::string_view type_name() {
  std::string_view name = __PRETTY_FUNCTION__;  // "… [with T = float; …]" or "… [T = float]"
  name.remove_prefix(name.find("T = ") + 4);
  return name.substr(0, name.find_first_of(";]"));
}

}  // namespace dist::detail
