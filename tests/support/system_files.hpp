#pragma once

#include <doctest/doctest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

/// The files by which a system describes its machine, in a folder that is removed at the end.
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

  void write(const std::string& file, const std::string& content) const {
    const std::filesystem::path path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary} << content;
  }

 private:
  std::filesystem::path root_;
};
