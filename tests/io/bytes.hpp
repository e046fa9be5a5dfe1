/// Small things that the tests of readers share: byte strings, files that vanish, and sources that are slow
/// or fail.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

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

/// A new folder that is removed with the files written into it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* parent = std::getenv("TMPDIR");
    std::string pattern = std::string(parent != nullptr ? parent : "/tmp") + "/dist-test-XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    for (const std::string& file : files_) ::unlink(file.c_str());
    ::rmdir(path_.c_str());
  }

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::span<const std::byte> content) {
    const std::string file = path_ + "/" + name;
    std::FILE* stream = std::fopen(file.c_str(), "wb");
    REQUIRE(stream != nullptr);
    if (!content.empty()) REQUIRE(std::fwrite(content.data(), 1, content.size(), stream) == content.size());
    REQUIRE(std::fclose(stream) == 0);
    files_.push_back(file);
    return file;
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

/// Gives at most `step` bytes at a time.
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

/// All that a source holds, read `step` bytes at a time.
template <class Source>
Bytes read_all(Source& source, std::size_t step = 4096) {
  Bytes all;
  Bytes buffer(step);
  while (const std::size_t count = source.read(buffer))
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count));
  return all;
}

}  // namespace dist_test
