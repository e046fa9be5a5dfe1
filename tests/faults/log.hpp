// The log of a worker, for the test that started it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include <dist/core/text.hpp>
#include <dist/device/wait.hpp>

namespace faults {

/// Writes lines "<nanoseconds> <word> <text>". May be called in a signal handler.
class Log {
 public:
  static void open(const char* path, std::size_t rank) {
    file_ = ::open(dist::concat(path, ".", rank).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  static void write(const char* word, const char* text = "") noexcept {
    char line[4096];
    const int size = std::snprintf(line, sizeof(line), "%lld %s %s\n",
                                   static_cast<long long>(dist::detail::monotonic_nanoseconds()), word, text);
    const std::size_t length = std::min(static_cast<std::size_t>(size), sizeof(line) - 1);
    if (::write(file_, line, length) < 0) _exit(98);
  }

 private:
  inline static int file_ = -1;
};

}  // namespace faults
