#include <dist/device/pjrt/xla.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <conformance/device.hpp>
#include <support/four_xla_cpus.hpp>
#include <support/what_throws.hpp>

TEST_CASE_TEMPLATE_INSTANTIATE(devices, dist::Xla);

TEST_CASE("the devices are the first ones of the process's client, one per replica") {
  CHECK(dist::Xla::count() == 4);
  CHECK(dist::Xla::placement(3) == std::vector<std::size_t>{0, 1, 2});
  CHECK(dist::Xla::placement(9) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(dist::Xla::device_name(2) == "/xla:2");
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          dist::Xla::refuse("/xla:4");
        }).find("Device '/xla:4' does not exist (the platform 'cpu' has 4 devices, numbered from /xla:0)") == 0);
}
