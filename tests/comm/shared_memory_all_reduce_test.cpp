#include <dist/comm/shared_memory_all_reduce.hpp>

#include <string_view>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/thread.hpp>

#include <doctest/doctest.h>
#include <conformance/cross_device_ops.hpp>

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, dist::SharedMemoryAllReduce);

TEST_CASE("SharedMemoryAllReduce is a policy: empty, with a name (spec H02)") {
  static_assert(dist::CrossDeviceOps<dist::SharedMemoryAllReduce, dist::ThreadCommunicator>);
  CHECK(dist::SharedMemoryAllReduce::name == std::string_view{"SharedMemoryAllReduce"});
}
