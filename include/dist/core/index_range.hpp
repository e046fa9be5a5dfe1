#pragma once

#include <compare>
#include <cstddef>

namespace dist {

/// The indices `begin`, `begin + 1`, …, `end - 1`.
struct IndexRange {
  std::size_t begin = 0;  ///< first index
  std::size_t end = 0;    ///< index after the last one

  /// The number of indices.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return end - begin; }
  friend constexpr bool operator==(IndexRange, IndexRange) = default;
};

/// Returns part `index` of `count` indices divided into `parts` nearly equal contiguous parts. All boundaries except
/// the end are multiples of `granule`, so that parts do not share cache lines.
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

/// A strongly typed index, so that a replica's index cannot be passed as a worker's.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  /// The element `index` of its kind.
  constexpr explicit Id(std::size_t index) : index_(index) {}

  /// The number, counted from 0.
  [[nodiscard]] constexpr std::size_t index() const noexcept { return index_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::size_t index_ = 0;
};

/// The index of a replica in the sync group: 0 to `num_replicas_in_sync() - 1` (spec E01).
using ReplicaId = Id<struct ReplicaTag>;

}  // namespace dist
