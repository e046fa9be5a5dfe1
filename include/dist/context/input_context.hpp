#pragma once

#include <cstddef>
#include <string>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// The position of an input pipeline, for the function that creates it (spec I19). The default strategy has one
/// pipeline and one replica (spec A21).
class InputContext {
 public:
  constexpr InputContext() = default;
  /// The context of pipeline `input_pipeline_id` of `num_input_pipelines`, for a strategy of `num_replicas_in_sync`
  /// replicas in all.
  constexpr InputContext(std::size_t num_input_pipelines, std::size_t input_pipeline_id,
                         std::size_t num_replicas_in_sync)
      : num_input_pipelines_(num_input_pipelines),
        input_pipeline_id_(input_pipeline_id),
        num_replicas_in_sync_(num_replicas_in_sync) {}

  /// The number of pipelines of all workers.
  [[nodiscard]] constexpr std::size_t num_input_pipelines() const noexcept { return num_input_pipelines_; }
  /// The part of the data to read: 0 to `num_input_pipelines() - 1`.
  [[nodiscard]] constexpr std::size_t input_pipeline_id() const noexcept { return input_pipeline_id_; }
  /// The number of replicas of all workers. Together they consume one global batch per step.
  [[nodiscard]] constexpr std::size_t num_replicas_in_sync() const noexcept { return num_replicas_in_sync_; }

  /// Returns one replica's rows of `global_batch_size`. Throws InvalidArgument if it is not divisible by the number of
  /// replicas.
  [[nodiscard]] std::size_t get_per_replica_batch_size(std::size_t global_batch_size) const;

  friend constexpr bool operator==(const InputContext&, const InputContext&) = default;

 private:
  std::size_t num_input_pipelines_ = 1;
  std::size_t input_pipeline_id_ = 0;
  std::size_t num_replicas_in_sync_ = 1;
};

/// "input pipeline 1 of 2, 8 replicas in sync"
[[nodiscard]] std::string to_string(const InputContext& context);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/context/input_context.ipp>
#endif
