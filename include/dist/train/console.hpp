#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string_view>

#include <dist/core/duration.hpp>

namespace dist::nn {

/// Where progress is shown, and by which clock.
struct Console {
  std::function<void(std::string_view)> write;
  /// Whether what was written can be written over: a terminal, not a file.
  bool terminal = false;
  /// Seconds since some fixed time.
  std::function<double()> clock;

  /// Writes to `file`, which must stay open, and flushes at once.
  [[nodiscard]] static Console to(std::FILE* file) {
    return {
        .write =
            [file](std::string_view message) {
              std::fwrite(message.data(), 1, message.size(), file);
              std::fflush(file);
            },
        .terminal = is_screen(fileno(file)),
        .clock =
            [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }};
  }
  [[nodiscard]] static Console standard_output() { return to(stdout); }

 private:
  /// False for a terminal without a width: a launcher reads it, and passes it on line by line.
  [[nodiscard]] static bool is_screen(int descriptor) {
    winsize size{};
    return isatty(descriptor) == 1 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  }
};

}  // namespace dist::nn
