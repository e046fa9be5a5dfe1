// Creates the strategies of the typed suites.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

namespace conformance {

[[nodiscard]] inline std::size_t replicas_of_environment() {
  const char* const replicas = std::getenv("DIST_TEST_REPLICAS");
  return replicas == nullptr ? 3 : std::stoul(replicas);
}

/// Returns the maximum number of replicas: the number of GPUs that the test has on this machine if each replica needs
/// one, otherwise unlimited.
[[nodiscard]] inline std::size_t most_replicas_of_environment() {
  const char* const gpus = std::getenv("DIST_TEST_NEEDS_GPUS");
  return gpus == nullptr ? std::numeric_limits<std::size_t>::max() : std::stoul(gpus);
}

/// Creates strategies `S` with this number of replicas.
template <class S, std::size_t replicas = 1>
struct Make {
  static std::unique_ptr<S> make() {
    if constexpr (std::is_constructible_v<S, std::size_t>) {
      return std::make_unique<S>(replicas);
    } else {
      static_assert(replicas == 1);
      return std::make_unique<S>();
    }
  }
};

/// Creates strategies with DIST_TEST_REPLICAS replicas; 3 by default.
template <class S>
struct MakeOfEnvironment {
  static std::unique_ptr<S> make() {
    if constexpr (std::is_constructible_v<S, std::size_t>)
      return std::make_unique<S>(replicas_of_environment());
    else
      return std::make_unique<S>();
  }
};

}  // namespace conformance
