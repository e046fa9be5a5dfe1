/// Runs programs once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/hlo/program.hpp>
#include <hlo/arrays.hpp>

namespace testing {

/// Returns a client with `count` of XLA's CPU devices.
inline dist::pjrt::Client cpus(std::size_t count) {
  return dist::pjrt::Client{{.values = {{"cpu_device_count", static_cast<std::int64_t>(count)}}}};
}

/// Returns replica 0's array of a result, or of each result.
template <class A>
dist::Tensor<typename A::Element> on_replica_0(const dist::hlo::PerReplica<A>& result) {
  return result.on(0);
}
template <class... Arrays>
auto on_replica_0(const std::tuple<dist::hlo::PerReplica<Arrays>...>& results) {
  return std::apply([](const auto&... each) { return std::tuple{each.on(0)...}; }, results);
}

/// Traces `body` for `replicas` replicas with equal arguments, and returns the results of replica 0.
template <class... Arrays, class Body>
auto run(std::size_t replicas, Body&& body, const dist::Tensor<typename Arrays::Element>&... arguments) {
  const dist::pjrt::Client client = cpus(replicas);
  const dist::hlo::Program program{client, dist::hlo::trace<Arrays...>(replicas, std::forward<Body>(body))};
  return on_replica_0(program(dist::hlo::PerReplica<Arrays>{client, replicas, arguments}...));
}

}  // namespace testing
