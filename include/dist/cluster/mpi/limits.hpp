#pragma once

#include <dirent.h>
#include <sys/resource.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>

namespace dist::detail {

/// What a limit of this process allows; nothing where it sets none.
[[nodiscard]] inline std::optional<std::size_t> limit_on(int resource) noexcept {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return static_cast<std::size_t>(limit.rlim_cur);
}

/// The descriptors that this process has open.
[[nodiscard]] inline std::size_t open_descriptors() noexcept {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 3;
  std::size_t count = 0;
  while (const dirent* const entry = readdir(folder))
    if (entry->d_name[0] != '.') ++count;
  closedir(folder);
  return count - 1;  // the folder itself
}

/// Throws OutOfMemory, with the number that is needed, where a limit of this process is too low for a job of so many
/// workers, `here` of which are on this node. MPI and libpmix print pages, or end the process by a signal, where they run
/// into one.
///
/// Measured with Open MPI 4.1 and libpmix 4.2: on one node 16 descriptors and 3 for each worker there, shared segments of
/// 4 MiB. Between nodes MPI opens a connection or two for each other worker.
inline void require_limits(std::size_t workers, std::size_t here) {
  const std::size_t descriptors = open_descriptors() + 20 + 4 * here + 2 * (workers - here);
  if (const auto limit = limit_on(RLIMIT_NOFILE); limit && *limit < descriptors)
    throw OutOfMemory(
        concat("This process may have ", *limit, " files open, too few for a job of ", workers, " workers"),
        concat(descriptors, " are needed"), concat("Raise the limit: ulimit -n ", descriptors, ", or more"));
  constexpr std::size_t file = std::size_t{8} << 20;
  if (const auto limit = limit_on(RLIMIT_FSIZE); limit && *limit < file)
    throw OutOfMemory(concat("This process may write files of ", *limit, " bytes only"),
                      concat("the memory that MPI shares between processes is one of up to ", file, " bytes"),
                      concat("Raise the limit: ulimit -f ", file / 1024, ", or more"));
}

}  // namespace dist::detail
