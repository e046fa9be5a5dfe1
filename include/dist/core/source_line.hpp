#pragma once

namespace dist {

/// A line of the C++ source, for messages.
struct SourceLine {
  const char* file;
  int line;
};

/// The line of the call; as a default argument, that of the function's caller.
[[nodiscard]] constexpr SourceLine here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
  return {file, line};
}

}  // namespace dist
