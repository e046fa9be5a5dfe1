#pragma once

#include <dist/context/input_context.hpp>

namespace dist {

DIST_INLINE std::size_t InputContext::get_per_replica_batch_size(std::size_t global_batch_size) const {
  if (num_replicas_in_sync_ == 0 || global_batch_size % num_replicas_in_sync_ != 0)
    throw InvalidArgument("The global batch size is not divisible by the number of replicas",
                          concat(global_batch_size, " rows, ", num_replicas_in_sync_, " replicas"),
                          "Choose a multiple of the number of replicas");
  return global_batch_size / num_replicas_in_sync_;
}

DIST_INLINE std::string to_string(const InputContext& context) {
  return concat("input pipeline ", context.input_pipeline_id(), " of ", context.num_input_pipelines(), ", ",
                context.num_replicas_in_sync(), context.num_replicas_in_sync() == 1 ? " replica" : " replicas",
                " in sync");
}

}  // namespace dist
