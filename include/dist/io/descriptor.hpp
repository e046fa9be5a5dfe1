#pragma once

#include <unistd.h>

#include <utility>

#include <dist/core/standard_descriptors.hpp>

namespace dist::io {

/// Owns a file descriptor, and closes it. It never has the number of standard input, output or error.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) noexcept : descriptor_(dist::detail::above_standard(descriptor)) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }
  /// Gives up ownership.
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }
  void reset(int descriptor = -1) noexcept {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = dist::detail::above_standard(descriptor);
  }

 private:
  int descriptor_ = -1;
};

}  // namespace dist::io
