#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

#include <dist/core/text.hpp>

namespace dist {

/// Prints one line on the standard error: "dist: <words>". It is written at once and in one piece, so that lines of
/// several processes do not mix.
inline void say(std::string_view words) {
  const std::string line = text("dist: ", printable(words, 8000, "\n\t"), '\n');
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

}  // namespace dist
