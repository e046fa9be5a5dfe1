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

/// Where a layer has random numbers from: a seed of its own, which follows from the network's, and the number of steps. Both
/// are state of the layer, so they are saved and restored with the network, and training goes on with the numbers that it
/// would have had.
///
/// A layer names `state` among its own, with `uses_replica` and `uses_global_rows`; in training its `forward` calls `next`
/// once, for a batch without rows too:
///
///   static constexpr std::array state{nn::LayerRandom::state};
///   …
///   const dist::RandomStream random = nn::LayerRandom::next(call.state[0]);
///   const auto number = random.uniform((call.first_row + row) * elements_of_row + i);
///
/// The stream is the same on every replica. Addressed by the element in the global batch, its numbers do not depend on how
/// many replicas share the rows.
struct LayerRandom {
  /// Four parts of the seed and two of the number of steps, of 16 bits each: small integers, which float holds and whose
  /// mean over up to 256 replicas is exact.
  static constexpr StateSpec state{.name = "seed_generator_state", .shape = Shape{6}, .initial = 0, .is_random = true};

  /// The first value of that state.
  template <class S>
  static void initialize(TensorView<S> values, std::uint64_t seed) {
    for (std::size_t part = 0; part < 4; ++part) values[part] = static_cast<S>(seed >> (16 * part) & 0xffffU);
    values[4] = values[5] = S{0};
  }

  /// The numbers of the next step.
  template <class S>
  [[nodiscard]] static RandomStream next(TensorView<S> values) {
    return next(values.data());
  }
  /// The same in a body that a device runs, once: on the first of the state's six values.
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
