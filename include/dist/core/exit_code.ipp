#pragma once

#include <dist/core/exit_code.hpp>

namespace dist {

DIST_INLINE int exit_code(const std::exception& error) noexcept {
  const auto* const own = dynamic_cast<const Error*>(&error);
  return own == nullptr ? ExitCode::failure : own->exit_code();
}

}  // namespace dist
