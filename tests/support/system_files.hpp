#pragma once

#include <doctest/doctest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

/// Files in a folder that is removed at the end, such as those by which a system describes its machine.
class SystemFiles {
 public:
  SystemFiles() {
    std::string pattern = std::filesystem::temp_directory_path() / "dist-machine-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
  }
  SystemFiles(const SystemFiles&) = delete;
  SystemFiles& operator=(const SystemFiles&) = delete;
  ~SystemFiles() { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::string root() const { return root_.string(); }

  [[nodiscard]] std::string path(const std::string& file) const { return root_ / file; }
  /// Of all files that are there, in the folder itself.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{root_}) names.push_back(entry.path().filename());
    return names;
  }
  [[nodiscard]] std::string read(const std::string& file) const {
    std::ifstream stream{root_ / file, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }

  void write(const std::string& file, const std::string& content) const {
    const std::filesystem::path path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary} << content;
  }

 private:
  std::filesystem::path root_;
};
