#pragma once

#include <cstddef>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>

namespace dist::data {

/// How many rows each of the next batches of a worker's replicas has, over and over (spec I04): entry `k * L + l` is
/// the share of local replica `l` at step `k`, for k below the number of workers.
///
/// There are `workers * local_replicas` entries. They sum to `global_batch`; together the workers take `global_batch`
/// rows at every step; any two entries differ by 1 at most. For one worker the entries are the replicas' shares of
/// every step: {3, 3, 2} of 8 rows for 3 replicas. Throws InvalidArgument for no rows, workers or replicas, and for a
/// worker that is not among them.
[[nodiscard]] inline std::vector<std::size_t> batch_sizes_for_worker(std::size_t global_batch, std::size_t workers,
                                                                     std::size_t local_replicas, std::size_t worker) {
  if (global_batch == 0 || workers == 0 || local_replicas == 0)
    throw InvalidArgument("A global batch cannot be divided",
                          text(global_batch, " rows for ", workers, " workers of ", local_replicas, " replicas"),
                          "All three must be 1 or more");
  if (worker >= workers)
    throw InvalidArgument("There is no such worker", text("worker ", worker, " of ", workers),
                          "Count the workers from 0");
  const std::size_t replicas = workers * local_replicas;
  const std::size_t least = global_batch / replicas;
  const std::size_t larger = global_batch % replicas;  // so many shares have one row more
  std::vector<std::size_t> sizes(replicas);
  for (std::size_t entry = 0; entry < replicas; ++entry) {
    const std::size_t place = (entry + worker * local_replicas) % replicas;
    sizes[entry] = least + (place < larger ? 1 : 0);
  }
  return sizes;
}

/// The rows that replica `replica` of `replicas` receives of a global batch of `rows`: slices of ceil(rows / replicas),
/// the first ones full, the last ones possibly short or empty (spec I05, I24).
[[nodiscard]] constexpr IndexRange rows_of_replica(std::size_t rows, std::size_t replica,
                                                   std::size_t replicas) noexcept {
  const std::size_t slice = rows / replicas + (rows % replicas != 0 ? 1 : 0);
  const auto boundary = [&](std::size_t slices) { return slice * slices < rows ? slice * slices : rows; };
  return {boundary(replica), boundary(replica + 1)};
}

}  // namespace dist::data
