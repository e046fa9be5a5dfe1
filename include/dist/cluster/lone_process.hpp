/// Detects a process that trains alone although a launcher started several.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/log.hpp>
#include <dist/core/text.hpp>

namespace dist::detail {

/// The processes of the launcher, according to its variables.
struct StartedProcesses {
  const char* variable = nullptr;  ///< null without a launcher
  std::size_t count = 1;
  bool is_first = true;  ///< True also if the launcher does not number the processes
};

/// Detects like `find_launcher`, without its messages and headers, because every program includes single-process
/// strategies.
[[nodiscard]] StartedProcesses started_processes() noexcept;

/// True once this process has joined others, as in a MultiWorker.
inline constinit std::atomic<bool> has_joined_others{false};
inline constinit Warning lone_process{};

/// Warns once, in the first process, if a single-process strategy is created in one of several processes, and no
/// multi-process strategy exists yet.
void warn_of_lone_process();

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/cluster/lone_process.ipp>
#endif
