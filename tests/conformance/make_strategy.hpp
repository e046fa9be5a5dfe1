// How the typed suites get a strategy.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace conformance {

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

}  // namespace conformance
