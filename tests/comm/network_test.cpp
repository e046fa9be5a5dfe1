#include <dist/comm/network.hpp>

#include <dist/comm/self.hpp>

#include <doctest/doctest.h>

#include <chrono>

static_assert(!dist::Network<dist::SelfCommunicator>);

TEST_CASE("a member waits ten minutes and compares calls, unless it is told otherwise") {
  const dist::NetworkOptions options;
  CHECK(options.timeout == std::chrono::minutes{10});
  CHECK(options.checks == dist::CollectiveChecks::calls);
  CHECK(options.health == nullptr);
  CHECK(options.watchdog == nullptr);
  CHECK_FALSE(options.worker.has_value());
  CHECK(options.host.empty());
}
