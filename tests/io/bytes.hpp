/// Helpers for tests of readers: byte strings, and sources with short reads.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dist_test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes(std::initializer_list<unsigned> values) {
  Bytes result;
  for (const unsigned value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}
inline Bytes bytes(const std::string& characters) {
  Bytes result;
  for (const char character : characters) result.push_back(static_cast<std::byte>(character));
  return result;
}
inline Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes result;
  for (const Bytes& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

/// A source that returns at most `step` bytes at a time.
template <class Source>
class Trickle {
 public:
  Trickle(Source source, std::size_t step) : source_(std::move(source)), step_(step) {}
  std::size_t read(std::span<std::byte> buffer) {
    return source_.read(buffer.first(buffer.size() < step_ ? buffer.size() : step_));
  }
  const std::string& name() const { return source_.name(); }

 private:
  Source source_;
  std::size_t step_;
};

/// Reads all of a source, `step` bytes at a time.
template <class Source>
Bytes read_all(Source& source, std::size_t step = 4096) {
  Bytes all;
  Bytes buffer(step);
  while (const std::size_t count = source.read(buffer))
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count));
  return all;
}

}  // namespace dist_test
