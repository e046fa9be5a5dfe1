#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/config.hpp>

namespace dist {

/// The name of a device of this process: "/cpu:0".
struct DeviceName {
  std::string type;   ///< in lower case: "cpu"
  std::size_t index;  ///< among the devices of its type
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

/// Formats a name such as "/cpu:0".
[[nodiscard]] std::string to_string(const DeviceName& device);

/// Parses a device name in any form that tf.distribute accepts (spec A02, R08): "/cpu:0", "CPU:0", "/device:CPU:0",
/// "/job:localhost/replica:0/task:0/device:CPU:0". Throws InvalidArgument for other names, and for devices of another
/// job or task (spec A01).
[[nodiscard]] DeviceName parse_device_name(std::string_view name);

/// Returns the device numbers for `names`, in replica order (spec A02). Throws InvalidArgument if `names` is empty, or
/// a device occurs twice or is not of type `type`. Calls `refuse`, which throws, if a number is not below `count`.
[[nodiscard]] std::vector<std::size_t> devices_named(std::span<const std::string> names, std::string_view type,
                                                     std::size_t count, void (*refuse)(std::string_view name));

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/device_name.ipp>
#endif
