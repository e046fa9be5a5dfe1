#include <dist/comm/network.hpp>

#include <doctest/doctest.h>

#include <chrono>

#include <dist/comm/self.hpp>

TEST_CASE("thread levels are ordered by the threads that they allow") {
  CHECK(dist::ThreadLevel::single < dist::ThreadLevel::funneled);
  CHECK(dist::ThreadLevel::funneled < dist::ThreadLevel::serialized);
  CHECK(dist::ThreadLevel::serialized < dist::ThreadLevel::multiple);
}

static_assert(!dist::Network<dist::SelfCommunicator>);

TEST_CASE("by default a member waits ten minutes and compares calls") {
  const dist::NetworkOptions options;
  CHECK(options.timeout == std::chrono::minutes{10});
  CHECK(options.checks == dist::CollectiveChecks::calls);
  CHECK(options.health == nullptr);
  CHECK(options.watchdog == nullptr);
  CHECK_FALSE(options.worker.has_value());
  CHECK(options.host.empty());
}
