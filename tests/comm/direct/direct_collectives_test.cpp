// Strategies test the collectives themselves, on GuardedDevice (conformance/guarded_device_test.cpp) and on GPUs
// (comm/cuda/policies_test.cpp).
#include <dist/comm/direct/direct_collectives.hpp>

#include <string>

#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/guarded_all_reduce.hpp>
#include <support/what_throws.hpp>

using testing::GuardedAllReduce;
using testing::GuardedDevice;

TEST_CASE("more replicas than a kernel takes operands throw InvalidArgument") {
  const std::string refused = support::what_throws<dist::InvalidArgument>(
      [] { const dist::Mirrored<GuardedAllReduce, GuardedDevice> strategy{9}; });
  CHECK(refused.find("too many replicas to reduce each other's memory: 9") != std::string::npos);
  CHECK(refused.find("Use up to 8 replicas") != std::string::npos);
}

TEST_CASE("replicas that disagree on a collective of device memory all throw CollectiveMismatch") {
  dist::Mirrored<GuardedAllReduce, GuardedDevice> strategy{2};
  auto values = strategy.buffer<float>(dist::Shape{8});
  strategy.run([&](auto& replica) {
    const auto mine = values.component(replica).subspan(0, replica.replica_id().index() == 0 ? 8 : 4);
    CHECK_THROWS_AS(replica.all_reduce(dist::sum, mine), dist::CollectiveMismatch);
  });
}
