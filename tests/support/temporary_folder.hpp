#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace support {

/// Creates a folder, and removes it with its content in the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "dist-test-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::system_error{errno, std::generic_category(), pattern};
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;  // files of killed processes may not be removable yet
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string path() const { return path_; }
  [[nodiscard]] std::string path(const std::string& file) const { return path_ / file; }
  /// Returns the names in the folder, or in a subfolder, in no order.
  [[nodiscard]] std::vector<std::string> names(const std::string& below = "") const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{path_ / below})
      names.push_back(entry.path().filename());
    return names;
  }
  /// Returns the content of a file; empty if it does not exist.
  [[nodiscard]] std::string read(const std::string& file) const {
    std::ifstream stream{path_ / file, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }

  /// Writes or replaces a file, and creates its folders. Returns its path.
  std::string write(const std::string& file, std::string_view content) const {
    const std::filesystem::path path = path_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream stream{path, std::ios::binary};
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    stream.close();
    if (!stream) throw std::system_error{std::make_error_code(std::errc::io_error), path};
    return path;
  }
  std::string write(const std::string& file, std::span<const std::byte> content) const {
    return write(file, std::string_view{reinterpret_cast<const char*>(content.data()), content.size()});
  }

 private:
  std::filesystem::path path_;
};

}  // namespace support
