#include <dist/device/device_name.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/error.hpp>

using dist::DeviceName;

namespace {

void refuse(std::string_view name) { throw dist::InvalidArgument(name, "none", "Another"); }

}  // namespace

TEST_CASE("device names are parsed in all forms of tf.distribute (spec A02, R08)") {
  const DeviceName expected{"cpu", 3};
  for (const char* name : {"/cpu:3", "cpu:3", "CPU:3", "/CPU:3", "/device:CPU:3", "device:cpu:3",
                           "/job:localhost/replica:0/task:0/device:CPU:3", "/job:localhost/cpu:3"}) {
    CAPTURE(name);
    CHECK(dist::parse_device_name(name) == expected);
  }
  CHECK(dist::parse_device_name("/gpu:12") == DeviceName{"gpu", 12});
  CHECK(to_string(DeviceName{"gpu", 12}) == "/gpu:12");
}

TEST_CASE("invalid names and devices of other jobs are rejected (spec A01)") {
  for (const char* name : {"", "/", "cpu", "/cpu:", "/cpu:x", "/cpu:1x", ":1", "/cpu:-1", "/cpu:1/gpu:0",
                           "/job:localhost", "/cpu:99999999999999999999"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(dist::parse_device_name(name), dist::InvalidArgument);
  }
  CHECK_THROWS_WITH_AS(dist::parse_device_name("/job:worker/task:0/cpu:0"),
                       "'/job:worker/task:0/cpu:0' does not name a device of this process (its job is not "
                       "'localhost'). Write a name such as /cpu:0 or /gpu:1.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(dist::parse_device_name("/job:localhost/task:1/cpu:0"), dist::InvalidArgument);
}

TEST_CASE("devices keep the given order (spec A02)") {
  const std::vector<std::string> names{"/cpu:2", "CPU:0", "/device:cpu:1"};
  CHECK(dist::devices_named(names, "cpu", 3, &refuse) == std::vector<std::size_t>{2, 0, 1});
}

TEST_CASE("no device, a repeated one, a missing one and one of another type are rejected (spec A01)") {
  using Names = std::vector<std::string>;
  CHECK_THROWS_WITH_AS(dist::devices_named(Names{}, "cpu", 2, &refuse),
                       "A strategy was given no device (the list of devices is empty). Name one or more devices, or "
                       "omit the list to use all devices.",
                       dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(dist::devices_named(Names{"/cpu:1", "cpu:1"}, "cpu", 2, &refuse),
                       "Device 'cpu:1' is named twice (a device takes one replica). Name each device once, or give a "
                       "number of replicas to let them share devices.",
                       dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(dist::devices_named(Names{"/cpu:1", "/CPU:2"}, "cpu", 2, &refuse), "/CPU:2 (none). Another.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(dist::devices_named(Names{"/gpu:0"}, "cpu", 2, &refuse), dist::InvalidArgument);
}
