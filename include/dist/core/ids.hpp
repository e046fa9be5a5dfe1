#pragma once

#include <compare>
#include <cstddef>

namespace dist {

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
