#pragma once

#include <cstddef>
#include <string>

#include <dist/core/error.hpp>

namespace dist {

/// What a function that makes an input pipeline learns about its place (spec I19). Under the default strategy: one
/// pipeline, one replica (spec A21).
class InputContext {
 public:
  constexpr InputContext() = default;
  constexpr InputContext(std::size_t num_input_pipelines, std::size_t input_pipeline_id,
                         std::size_t num_replicas_in_sync)
      : num_input_pipelines_(num_input_pipelines),
        input_pipeline_id_(input_pipeline_id),
        num_replicas_in_sync_(num_replicas_in_sync) {}

  /// The number of pipelines in all workers together.
  [[nodiscard]] constexpr std::size_t num_input_pipelines() const noexcept { return num_input_pipelines_; }
  /// 0 to `num_input_pipelines() - 1`: which part of the data to read.
  [[nodiscard]] constexpr std::size_t input_pipeline_id() const noexcept { return input_pipeline_id_; }
  [[nodiscard]] constexpr std::size_t num_replicas_in_sync() const noexcept { return num_replicas_in_sync_; }

  /// The rows that a replica takes of `global_batch_size`: what to batch by in the function. Throws InvalidArgument
  /// when the replicas do not divide it.
  [[nodiscard]] std::size_t get_per_replica_batch_size(std::size_t global_batch_size) const {
    if (num_replicas_in_sync_ == 0 || global_batch_size % num_replicas_in_sync_ != 0)
      throw InvalidArgument("The global batch size is not divisible by the number of replicas",
                            concat(global_batch_size, " rows, ", num_replicas_in_sync_, " replicas"),
                            "Choose a multiple of the number of replicas");
    return global_batch_size / num_replicas_in_sync_;
  }

  friend constexpr bool operator==(const InputContext&, const InputContext&) = default;

 private:
  std::size_t num_input_pipelines_ = 1;
  std::size_t input_pipeline_id_ = 0;
  std::size_t num_replicas_in_sync_ = 1;
};

/// "input pipeline 1 of 2, 8 replicas in sync"
[[nodiscard]] inline std::string to_string(const InputContext& context) {
  return concat("input pipeline ", context.input_pipeline_id(), " of ", context.num_input_pipelines(), ", ",
                context.num_replicas_in_sync(), context.num_replicas_in_sync() == 1 ? " replica" : " replicas",
                " in sync");
}

}  // namespace dist
