// How the typed suites get a strategy.
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

/// How many replicas there may be, where each needs a GPU of its own: as many as the test has GPUs of this machine. Any
/// number elsewhere.
[[nodiscard]] inline std::size_t most_replicas_of_environment() {
  const char* const gpus = std::getenv("DIST_TEST_NEEDS_GPUS");
  return gpus == nullptr ? std::numeric_limits<std::size_t>::max() : std::stoul(gpus);
}

/// Makes strategies `S` with that many replicas.
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

/// The same with as many replicas as the environment says in DIST_TEST_REPLICAS; with 3 without it.
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
