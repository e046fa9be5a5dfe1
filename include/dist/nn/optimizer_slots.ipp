#pragma once

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/nn/optimizer_slots.hpp>

namespace dist::nn::detail {

DIST_INLINE void refuse_mixed_aggregation(std::string_view optimizer) {
  throw InvalidArgument(
      concat("Optimizer ", optimizer, " was used with and without nn::skip_aggregation"),
      "with aggregation the slots are divided among the replicas, without it each replica has its own",
      "Use one kind of apply_gradients, or two optimizers");
}

}  // namespace dist::nn::detail
