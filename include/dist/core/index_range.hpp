#pragma once

#include <compare>
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

/// A number that counts one kind of thing, so that a replica's number cannot be passed where a worker's is meant.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : index_(index) {}

  [[nodiscard]] constexpr std::size_t index() const noexcept { return index_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::size_t index_ = 0;
};

/// A replica's place in the sync group: 0 to `num_replicas_in_sync() - 1` (spec E01).
using ReplicaId = Id<struct ReplicaTag>;

}  // namespace dist
