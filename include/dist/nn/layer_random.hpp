#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/core/config.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// A layer's source of random numbers: its seed, derived from the network's, and the number of steps. Both are state,
/// so they are saved with the network, and resumed training continues the same sequence.
///
/// A layer lists `state` in its own, with `uses_replica` and `uses_global_rows`. In training its `forward` calls `next`
/// once, also for an empty batch:
///
///   static constexpr std::array state{nn::LayerRandom::state};
///   …
///   const dist::RandomStream random = nn::LayerRandom::next(call.state[0]);
///   const auto number = random.uniform((call.first_row + row) * elements_of_row + i);
///
/// The stream is equal on all replicas. Indexed by the position in the global batch, numbers do not depend on the
/// number of replicas.
struct LayerRandom {
  /// Four parts of the seed and two of the number of steps, 16 bits each: float represents them, and their mean over up
  /// to 256 replicas, exactly.
  static constexpr StateSpec state{.name = "seed_generator_state", .shape = Shape{6}, .initial = 0, .is_random = true};

  /// Sets the initial state.
  template <class S>
  static void initialize(TensorView<S> values, std::uint64_t seed) {
    for (std::size_t part = 0; part < 4; ++part) values[part] = static_cast<S>(seed >> (16 * part) & 0xffffU);
    values[4] = values[5] = S{0};
  }

  /// Returns the numbers of the next step.
  template <class S>
  [[nodiscard]] static RandomStream next(TensorView<S> values) {
    return next(values.data());
  }
  /// Returns the numbers of the next step, for one call on a device; `values` are the six values of the state.
  template <class S>
  [[nodiscard]] DIST_HD static RandomStream next(S* values) {
    std::uint64_t seed = 0;
    for (std::size_t part = 0; part < 4; ++part) seed |= static_cast<std::uint64_t>(values[part]) << (16 * part);
    const std::uint64_t step = static_cast<std::uint64_t>(values[4]) + (static_cast<std::uint64_t>(values[5]) << 16);
    values[4] = static_cast<S>((step + 1) & 0xffffU);
    values[5] = static_cast<S>((step + 1) >> 16 & 0xffffU);
    return RandomStream{seed, step};
  }
};

}  // namespace dist::nn
