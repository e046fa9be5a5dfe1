#pragma once

#include <cstddef>
#include <string>

#include <dist/core/error.hpp>

namespace dist {

/// What a function that makes an input pipeline is told of its place (spec I19). Of the default strategy: one pipeline,
/// one replica (spec A21).
struct InputContext {
  /// In all workers together.
  std::size_t num_input_pipelines = 1;
  /// 0 to `num_input_pipelines - 1`: which part of the data to read.
  std::size_t input_pipeline_id = 0;
  std::size_t num_replicas_in_sync = 1;

  /// The rows that a replica takes of `global_batch_size`: what to batch by in the function. Throws InvalidArgument
  /// when the replicas do not divide it.
  [[nodiscard]] std::size_t get_per_replica_batch_size(std::size_t global_batch_size) const {
    if (num_replicas_in_sync == 0 || global_batch_size % num_replicas_in_sync != 0)
      throw InvalidArgument("The global batch size is not divisible by the number of replicas",
                            text(global_batch_size, " rows, ", num_replicas_in_sync, " replicas"),
                            "Choose a multiple of the number of replicas");
    return global_batch_size / num_replicas_in_sync;
  }

  friend constexpr bool operator==(const InputContext&, const InputContext&) = default;
};

/// "input pipeline 1 of 2, 8 replicas in sync"
[[nodiscard]] inline std::string to_string(const InputContext& context) {
  return text("input pipeline ", context.input_pipeline_id, " of ", context.num_input_pipelines, ", ",
              context.num_replicas_in_sync, context.num_replicas_in_sync == 1 ? " replica" : " replicas", " in sync");
}

}  // namespace dist
