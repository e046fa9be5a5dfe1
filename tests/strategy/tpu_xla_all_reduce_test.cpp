#include <dist/strategy/tpu.hpp>

#include <doctest/doctest.h>

#include <type_traits>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/strategy/mirrored.hpp>

using dist::XlaAllReduce;

static_assert(dist::CrossDeviceOps<XlaAllReduce, dist::ThreadCommunicator>);
static_assert(!dist::detail::fits<XlaAllReduce, dist::SelfCommunicator>);

TEST_CASE("XlaAllReduce is a policy for Xla devices that reduces on the host in replica functions (spec H02)") {
  dist::Mirrored<XlaAllReduce> strategy{1};
  static_assert(std::is_same_v<decltype(strategy)::Device, dist::Xla>);
  CHECK(strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 3); })[0] == 3);
  CHECK(strategy.describe() == "Mirrored<XlaAllReduce, Xla>: 1 replica on /xla:0");
}
