#pragma once

#include <cstddef>
#include <string>

#include <dist/core/config.hpp>

namespace dist {

/// The CPU quota of this process in whole processors, at least 1, as its control groups limit it, for example in a
/// container. Returns the largest number if they set no limit. Reads cpu.max of version 2, and cpu.cfs_quota_us and
/// cpu.cfs_period_us of version 1, of the process's group and of all groups above it, from the files under `root`.
[[nodiscard]] std::size_t processor_quota(const std::string& root = "");

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/processor_quota.ipp>
#endif
