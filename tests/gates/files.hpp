/// Functions that read the source tree.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

namespace gates {

inline std::filesystem::path source_dir() { return DIST_SOURCE_DIR; }

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Returns the contents of the regular files below `folder` whose names end in one of `endings`, by relative path.
inline std::map<std::string, std::string> read_tree(const std::filesystem::path& folder,
                                                    std::initializer_list<const char*> endings) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto name = entry.path().string();
    for (const std::string ending : endings) {
      if (entry.is_regular_file() && name.ends_with(ending)) {
        files[std::filesystem::relative(entry.path(), folder).generic_string()] = read_file(entry.path());
      }
    }
  }
  return files;
}

}  // namespace gates
