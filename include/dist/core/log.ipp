#pragma once

#include <cstdio>
#include <cstdlib>

#include <dist/core/log.hpp>

namespace dist::detail {

DIST_INLINE bool warnings_are_wanted() noexcept {
  const char* const chosen = std::getenv("DIST_WARNINGS");
  return chosen == nullptr || std::string_view{chosen} != "0";
}

DIST_INLINE void Warning::emit(std::string_view sentence) noexcept {
  if (given_.exchange(true, std::memory_order_relaxed) || !warnings_are_wanted()) return;
  std::fprintf(stderr, "dist: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
}

}  // namespace dist::detail
