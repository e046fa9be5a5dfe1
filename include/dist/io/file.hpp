#pragma once

#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <dist/core/standard_descriptors.hpp>
#include <dist/core/text.hpp>

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

/// What a file holds, for a message that a name is not among them: the first ten names, and how many more there are.
[[nodiscard]] inline std::string listed_names(std::span<const std::string> names) {
  constexpr std::size_t listed = 10;
  if (names.empty()) return "it is empty";
  std::string list = concat("it holds ", quoted(names[0]));
  for (std::size_t i = 1; i < names.size() && i < listed; ++i) list += concat(", ", quoted(names[i]));
  if (names.size() > listed) list += concat(" and ", names.size() - listed, " more");
  return list;
}

}  // namespace dist::io
