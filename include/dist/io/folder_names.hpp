#pragma once

#include <dirent.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>

namespace dist::io {

/// The names in a folder, sorted by their bytes, without "." and "..". Where it cannot be read, calls `fail(error)` with the
/// system's number of the error; no names if that returns.
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
