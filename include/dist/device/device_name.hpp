#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/config.hpp>

namespace dist {

/// A device of this process: "/cpu:0".
struct DeviceName {
  std::string type;   ///< in lower case: "cpu"
  std::size_t index;  ///< among the devices of its type
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

/// "/cpu:0"
[[nodiscard]] std::string to_string(const DeviceName& device);

/// Reads a device's name in any of the forms that tf.distribute takes (spec A02, R08): "/cpu:0", "CPU:0",
/// "/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0". Throws InvalidArgument for anything else, and for
/// the device of another job or task (spec A01).
[[nodiscard]] DeviceName parse_device_name(std::string_view name);

/// The numbers of the devices that `names` name, in their order, which is that of the replicas (spec A02). Throws
/// InvalidArgument for no name, for a device named twice, or of another type than `type`. One that is not among the first
/// `count` it gives to `refuse`, which throws.
[[nodiscard]] std::vector<std::size_t> devices_named(std::span<const std::string> names, std::string_view type,
                                                     std::size_t count, void (*refuse)(std::string_view name));

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/device_name.ipp>
#endif
