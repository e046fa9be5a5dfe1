#pragma once

#include <dist/nn/losses/global_batch_size.hpp>

namespace dist::nn::detail {

DIST_INLINE void require_global_batch_size(GlobalBatchSize global, std::size_t examples, std::size_t rank,
                                           std::size_t replicas) {
  if (examples < global.value() || examples == 0) return;
  if (examples > global.value())
    throw InvalidArgument(
        "The global batch size of a loss is too small",
        replicas == 1 ? concat("it is ", global.value(), ", and there are ", examples, " examples")
                      : concat("it is ", global.value(), ", and replica ", rank, " of ", replicas, " alone has ",
                               examples, " examples"),
        "Give the number of examples of all replicas together, which distribute_dataset divides among them");
  if (replicas > 1 && rank == replicas - 1 && !batch_size_of_one_replica.was_given())
    batch_size_of_one_replica.emit(concat(
        "replica ", rank, " of ", replicas, " has all ", examples, " examples of the global batch: if every replica ",
        "has this number, the loss was given the size of one replica's batch, and gradients are ", replicas,
        " times too large. DIST_WARNINGS=0 silences this."));
}

}  // namespace dist::nn::detail
