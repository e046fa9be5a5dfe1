#pragma once

#include <sys/resource.h>

#include <doctest/doctest.h>

namespace support {

/// Limits the size of files that this process writes to `bytes` during its lifetime.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit less{bytes, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &less) == 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace support
