#pragma once

#include <dist/core/text.hpp>
#include <dist/net/deadline.hpp>

namespace dist::net {

DIST_INLINE std::string seconds(Milliseconds wait) {
  const auto whole = wait.count() / 1000;
  const auto rest = wait.count() % 1000;
  if (rest == 0) return text(whole, " s");
  std::string digits = std::to_string(1000 + rest).substr(1);
  while (digits.back() == '0') digits.pop_back();
  return text(whole, ".", digits, " s");
}

}  // namespace dist::net
