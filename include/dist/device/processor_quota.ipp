#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/text.hpp>
#include <dist/device/processor_quota.hpp>
#include <dist/device/topology.hpp>

namespace dist {

namespace detail {

inline constexpr std::size_t no_quota = std::numeric_limits<std::size_t>::max();

/// Divides a quota by a period, both as text in microseconds. Returns `no_quota` unless both are positive numbers.
[[nodiscard]] inline std::size_t whole_processors(const std::string& quota, const std::string& period) {
  const long long time = std::strtoll(quota.c_str(), nullptr, 10);
  const long long of = std::strtoll(period.c_str(), nullptr, 10);
  if (time <= 0 || of <= 0) return no_quota;
  return static_cast<std::size_t>(std::max(time / of, 1LL));
}

/// The limit of one control group, whose files are in `folder`.
[[nodiscard]] inline std::size_t quota_of_group(const std::string& folder) {
  const std::string both = text_of_file(folder + "/cpu.max");  // "200000 100000", or "max 100000"
  const std::size_t space = both.find(' ');
  if (space != std::string::npos) return whole_processors(both.substr(0, space), both.substr(space));
  return whole_processors(text_of_file(folder + "/cpu.cfs_quota_us"), text_of_file(folder + "/cpu.cfs_period_us"));
}

}  // namespace detail

DIST_INLINE std::size_t processor_quota(const std::string& root) {
  std::size_t least = detail::no_quota;
  // Lines such as "0::/group" of version 2, "4:cpu,cpuacct:/group" of version 1.
  const std::string groups = detail::text_of_file(root + "/proc/self/cgroup");
  std::string_view rest = groups;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string among = text(",", controllers, ",");
    if (!controllers.empty() && among.find(",cpu,") == std::string::npos) continue;
    const std::string hierarchy = text(root, "/sys/fs/cgroup", controllers.empty() ? "" : "/", controllers);
    // A container may see its own group as the root, so groups that are not there are left out.
    for (std::string group{line.substr(second + 1)};; group.resize(group.rfind('/'))) {
      least = std::min(least, detail::quota_of_group(hierarchy + group));
      if (group.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

}  // namespace dist
