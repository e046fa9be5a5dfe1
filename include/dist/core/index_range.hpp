#pragma once

#include <cstddef>

namespace dist {

/// The indices `begin`, `begin + 1`, …, `end - 1`.
struct IndexRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] constexpr std::size_t size() const noexcept { return end - begin; }
  friend constexpr bool operator==(IndexRange, IndexRange) = default;
};

/// The part `index` of `parts` nearly equal, contiguous parts of `count` indices. Every boundary is a multiple of
/// `granule` (except the end), so that parts of one array share no cache line and no vector register.
[[nodiscard]] constexpr IndexRange shard_of(std::size_t count, std::size_t index, std::size_t parts,
                                            std::size_t granule = 1) noexcept {
  const std::size_t granules = (count + granule - 1) / granule;
  const std::size_t base = granules / parts;
  const std::size_t extra = granules % parts;
  const auto boundary = [&](std::size_t part) {
    const std::size_t at = (base * part + (part < extra ? part : extra)) * granule;
    return at < count ? at : count;
  };
  return {boundary(index), boundary(index + 1)};
}

}  // namespace dist
