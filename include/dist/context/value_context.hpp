#pragma once

#include <cstddef>

#include <dist/core/ids.hpp>

namespace dist {

/// What the function of `values_from_function` learns about the replica for which it makes a value (spec C19).
class ValueContext {
 public:
  constexpr ValueContext(ReplicaId replica_id, std::size_t num_replicas_in_sync)
      : replica_id_(replica_id), num_replicas_in_sync_(num_replicas_in_sync) {}

  [[nodiscard]] constexpr ReplicaId replica_id() const noexcept { return replica_id_; }
  [[nodiscard]] constexpr std::size_t num_replicas_in_sync() const noexcept { return num_replicas_in_sync_; }

 private:
  ReplicaId replica_id_;
  std::size_t num_replicas_in_sync_;
};

}  // namespace dist
