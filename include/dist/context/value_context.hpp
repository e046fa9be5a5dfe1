#pragma once

#include <cstddef>

#include <dist/core/ids.hpp>

namespace dist {

/// What the function of `values_from_function` is told about the replica it makes a value for (spec C19).
struct ValueContext {
  ReplicaId replica_id;
  std::size_t num_replicas_in_sync;
};

}  // namespace dist
