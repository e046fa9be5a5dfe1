#pragma once

#include <concepts>
#include <cstdint>

#include <dist/core/config.hpp>

namespace dist {

/// Four random words. Replaces std::array, which is not available in device code.
struct RandomBlock {
  std::uint32_t words[4];  ///< in the order of the generator
  friend constexpr bool operator==(const RandomBlock&, const RandomBlock&) = default;
};

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11): four random words
/// as a pure function of a counter and a key.
[[nodiscard]] DIST_HD constexpr RandomBlock philox(RandomBlock counter, std::uint32_t key_0, std::uint32_t key_1) {
  constexpr std::uint64_t multiplier_0 = 0xD2511F53U;
  constexpr std::uint64_t multiplier_1 = 0xCD9E8D57U;
  constexpr std::uint32_t weyl_0 = 0x9E3779B9U;
  constexpr std::uint32_t weyl_1 = 0xBB67AE85U;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product_0 = multiplier_0 * counter.words[0];
    const std::uint64_t product_1 = multiplier_1 * counter.words[2];
    counter = {{static_cast<std::uint32_t>(product_1 >> 32) ^ counter.words[1] ^ key_0,
                static_cast<std::uint32_t>(product_1),
                static_cast<std::uint32_t>(product_0 >> 32) ^ counter.words[3] ^ key_1,
                static_cast<std::uint32_t>(product_0)}};
    key_0 += weyl_0;
    key_1 += weyl_1;
  }
  return counter;
}

/// Counter-based random numbers: element `i` is the same on all replicas. `stream` separates independent uses of one
/// seed.
class RandomStream {
 public:
  /// Elements of the sequence with this seed and stream.
  DIST_HD constexpr explicit RandomStream(std::uint64_t seed, std::uint64_t stream = 0)
      : seed_(seed), stream_(stream) {}

  /// 64 uniform random bits for element `index`.
  [[nodiscard]] DIST_HD constexpr std::uint64_t bits(std::uint64_t index) const { return lower(block(index)); }

  /// Uniform in [0, 1), with the full precision of `T`.
  template <std::floating_point T = float>
  [[nodiscard]] DIST_HD constexpr T uniform(std::uint64_t index) const {
    return unit<T>(bits(index));
  }

  /// An integer in [0, bound), from the high half of a product; the bias is below bound / 2^64.
  [[nodiscard]] DIST_HD constexpr std::uint64_t below(std::uint64_t bound, std::uint64_t index) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64);
  }

  /// A standard normal number, by the Box-Muller transform of one block of four words.
  template <std::floating_point T = float>
  [[nodiscard]] DIST_HD T normal(std::uint64_t index) const {
    const RandomBlock of_index = block(index);
    const double radius_uniform = 1.0 - unit<double>(lower(of_index));  // in (0, 1]
    const double angle = 6.283185307179586476925 * unit<double>(upper(of_index));
    // Builtins, because `<cmath>` alone would exceed a third of the compile time budget of core/.
    return static_cast<T>(__builtin_sqrt(-2.0 * __builtin_log(radius_uniform)) * __builtin_cos(angle));
  }

 private:
  [[nodiscard]] DIST_HD constexpr RandomBlock block(std::uint64_t index) const {
    return philox({{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                    static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)}},
                  static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32));
  }
  [[nodiscard]] DIST_HD static constexpr std::uint64_t lower(const RandomBlock& block) {
    return (std::uint64_t{block.words[1]} << 32) | block.words[0];
  }
  [[nodiscard]] DIST_HD static constexpr std::uint64_t upper(const RandomBlock& block) {
    return (std::uint64_t{block.words[3]} << 32) | block.words[2];
  }

  template <std::floating_point T>
  [[nodiscard]] DIST_HD static constexpr T unit(std::uint64_t bits) {
    if constexpr (sizeof(T) == 4) return static_cast<T>(bits >> 40) * T{0x1p-24};
    return static_cast<T>(bits >> 11) * T(0x1p-53);
  }

  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace dist
