#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/device/device_name.hpp>

namespace dist {

DIST_INLINE std::string to_string(const DeviceName& device) { return concat("/", device.type, ":", device.index); }

DIST_INLINE DeviceName parse_device_name(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    throw InvalidArgument(concat(quoted(name), " does not name a device of this process"), why,
                          "Write a name such as /cpu:0 or /gpu:1");
  };
  DeviceName device{"", 0};
  std::string_view rest = name;
  while (!rest.empty() || device.type.empty()) {
    if (rest.starts_with('/')) rest.remove_prefix(1);
    std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(part.size());
    if (part.starts_with("job:")) {
      if (part != "job:localhost") refuse("its job is not 'localhost'");
      continue;
    }
    if (part.starts_with("replica:") || part.starts_with("task:")) {
      if (part.substr(part.find(':')) != ":0") refuse("a process has only replica 0 and task 0 of its job");
      continue;
    }
    if (part.starts_with("device:")) part.remove_prefix(std::string_view{"device:"}.size());
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos || colon == 0) refuse("a type, a colon and a number were expected");
    for (const char letter : part.substr(0, colon))
      device.type += static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
    const std::string_view digits = part.substr(colon + 1);
    constexpr std::size_t most_digits = 9;  // far from overflow
    if (digits.empty() || digits.size() > most_digits || !rest.empty())
      refuse("a type, a colon and a number were expected");
    for (const char digit : digits) {
      if (digit < '0' || digit > '9') refuse("a type, a colon and a number were expected");
      device.index = 10 * device.index + static_cast<std::size_t>(digit - '0');
    }
  }
  return device;
}

DIST_INLINE std::vector<std::size_t> devices_named(std::span<const std::string> names, std::string_view type,
                                                   std::size_t count, void (*refuse)(std::string_view name)) {
  if (names.empty())
    throw InvalidArgument("A strategy was given no device", "the list of devices is empty",
                          "Name one or more devices, or omit the list to use all devices");
  std::vector<std::size_t> devices;
  for (const std::string& name : names) {
    const DeviceName device = parse_device_name(name);
    if (device.type != type)
      throw InvalidArgument(concat("Device '", name, "' has a different type than the strategy's devices"),
                            concat("the strategy computes on devices of type '", type, "'"),
                            concat("Name devices such as /", type, ":0, or use a strategy for that type"));
    if (device.index >= count) refuse(name);
    if (std::find(devices.begin(), devices.end(), device.index) != devices.end())
      throw InvalidArgument(concat("Device '", name, "' is named twice"), "a device takes one replica",
                            "Name each device once, or give a number of replicas to let them share devices");
    devices.push_back(device.index);
  }
  return devices;
}

}  // namespace dist
