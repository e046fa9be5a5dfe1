/// How a dataset reaches the replicas of a strategy.
#pragma once

#include <cstddef>

#include <dist/data/batch.hpp>

namespace dist::data {

/// How the workers share the data (spec I07). With one worker there is nothing to share.
enum class AutoShardPolicy : signed char {
  /// Every worker reads everything (spec I12).
  off = -1,
  /// By file where the source reads files, otherwise by data (spec I10).
  automatic = 0,
  /// Every worker reads every W-th file (spec I08).
  file = 1,
  /// Every worker reads everything and keeps every W-th element (spec I09).
  data = 2,
  /// Where the program says `shard(shard_hint)`, and nowhere else (spec I11).
  hint = 3,
};

/// The options of `distribute_dataset`, which makes one pipeline per worker (spec I16).
struct InputOptions {
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::automatic;
  /// How many batches a background thread makes ahead of their use; 0 makes each one when it is asked for.
  std::size_t fetch_ahead = 1;
  /// Whether a last step runs that does not fill the batches of all replicas (spec I24, I25).
  Remainder last_step = Remainder::keep;
};

/// For `distribute_datasets_from_function`: one pipeline per worker, whose replicas take its elements in turn (spec
/// I17).
struct PipelinePerWorker {
  Remainder last_step = Remainder::keep;
};

/// For `distribute_datasets_from_function` of a strategy with one worker: every replica has a pipeline of its own (spec
/// I18).
struct PipelinePerReplica {
  /// How many elements a background thread makes ahead for each replica; 0 makes each one when it is asked for.
  std::size_t fetch_ahead = 1;
  Remainder last_step = Remainder::keep;
};

}  // namespace dist::data
