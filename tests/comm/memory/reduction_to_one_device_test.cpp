#include <dist/comm/memory/reduction_to_one_device.hpp>

#include <string_view>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/thread/communicator.hpp>

#include <doctest/doctest.h>
#include <conformance/cross_device_ops.hpp>

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, dist::ReductionToOneDevice);

TEST_CASE("ReductionToOneDevice is a policy: empty, with a name (spec H02)") {
  static_assert(dist::CrossDeviceOps<dist::ReductionToOneDevice, dist::ThreadCommunicator>);
  CHECK(dist::ReductionToOneDevice::name == std::string_view{"ReductionToOneDevice"});
}
