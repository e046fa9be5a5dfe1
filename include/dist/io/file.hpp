#pragma once

#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/standard_descriptors.hpp>
#include <dist/core/text.hpp>

namespace dist::io {

/// Owns a file descriptor, and closes it. Never uses the descriptors of standard input, output and error.
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes ownership of `descriptor`; negative: none. Replaces descriptors 0 to 2 by higher ones.
  explicit Descriptor(int descriptor) noexcept : descriptor_(dist::detail::above_standard(descriptor)) {}
  /// Takes over the descriptor of `other`.
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  /// Closes the descriptor, and takes over the descriptor of `other`.
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  /// The descriptor, for system calls; -1: none.
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  /// True if there is a descriptor.
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }
  /// Releases ownership.
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }
  /// Closes the descriptor, and takes ownership of another one.
  void reset(int descriptor = -1) noexcept {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = dist::detail::above_standard(descriptor);
  }

 private:
  int descriptor_ = -1;
};

/// Lists the names in a file, for error messages: the first ten, and the number of others.
[[nodiscard]] inline std::string listed_names(std::span<const std::string> names) {
  constexpr std::size_t listed = 10;
  if (names.empty()) return "it is empty";
  std::string list = concat("it holds ", quoted(names[0]));
  for (std::size_t i = 1; i < names.size() && i < listed; ++i) list += concat(", ", quoted(names[i]));
  if (names.size() > listed) list += concat(" and ", names.size() - listed, " more");
  return list;
}

/// Returns the names in a folder except "." and "..", sorted by their bytes. If it cannot be read, calls `fail` with
/// errno, then returns no names.
template <class Fail>
[[nodiscard]] std::vector<std::string> folder_names(const std::string& folder, const Fail& fail) {
  std::vector<std::string> names;
  DIR* const entries = ::opendir(folder.c_str());
  int error = errno;
  if (entries != nullptr) {
    errno = 0;
    while (const dirent* const entry = ::readdir(entries))
      if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
    error = errno;
    ::closedir(entries);
  }
  if (error != 0) {
    fail(error);
    return {};
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace dist::io
