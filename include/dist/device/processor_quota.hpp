#pragma once

#include <cstddef>
#include <string>

#include <dist/core/config.hpp>

namespace dist {

/// How many whole processors' time the control groups of this process leave it, at least 1: a container's limit on CPUs. The
/// largest number if there is no limit. Reads cpu.max of version 2, and cpu.cfs_quota_us and cpu.cfs_period_us of version 1,
/// of the process's group and of all groups above it, from the files under `root`.
[[nodiscard]] std::size_t processor_quota(const std::string& root = "");

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/processor_quota.ipp>
#endif
