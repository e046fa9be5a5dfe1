/// How a dataset reaches the replicas of a strategy.
#pragma once

#include <cstddef>

#include <dist/context/input_context.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/batch_size.hpp>

namespace dist::data {

/// How the workers share the data (spec I07). With one worker there is nothing to share.
enum class AutoShardPolicy : signed char {
  /// Every worker reads everything (spec I12).
  off = -1,
  /// By file where the source reads files, at least one for each worker, otherwise by data (spec I10).
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
  /// Whether it is passed over once, as for an evaluation: then nobody is warned that a shuffled dataset has the same
  /// order whenever it is distributed.
  bool single_pass = false;
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

// What the methods of strategies call. Defined in <dist/data/distributed_dataset.hpp>, <dist/data/distributed_pipelines.hpp>,
// <dist/data/prefetch.hpp> and <dist/data/uploaded.hpp>, which only programs with datasets compile.

/// Divides the global batches of `dataset` among the replicas of this worker, and makes `options.fetch_ahead` batches
/// ahead of their use (spec I01, I15). What `distribute_dataset` of a strategy with several replicas returns.
///
/// Called once, outside the loop over epochs: every loop over the result is a new epoch of `dataset`, which is shuffled
/// anew (spec I31). `agreement` is that of the workers, where there are several. Throws as DistributedDataset does.
template <class D, class Options = InputOptions, Agreement A = NoAgreement>
[[nodiscard]] auto distribute_dataset(D dataset, std::size_t local_replicas, const InputContext& context,
                                      const Options& options = {}, A agreement = A());

/// Calls `fn` for datasets that are batched by the batch size of one replica:
/// `batch(context.get_per_replica_batch_size(global_batch_size))`. Each step takes one element for every local replica;
/// the datasets are neither divided among workers nor batched again (spec I17).
///
/// With PipelinePerWorker `fn` is called once, with `context`, and its dataset is not made ahead of its use unless it
/// ends in `prefetch`. With PipelinePerReplica it is called once for each replica, in their order, with the replica's
/// number as `input_pipeline_id` (spec I18).
///
/// Called once, outside the loop over epochs: every loop over the result is a new epoch (spec I31). `agreement` is that
/// of the workers, where there are several. Throws InvalidArgument for zero replicas and for a pipeline per replica of
/// several workers, and what `fn` throws.
template <class Fn, class Options = PipelinePerWorker, Agreement A = NoAgreement>
[[nodiscard]] auto distribute_datasets_from_function(Fn&& fn, std::size_t local_replicas, const InputContext& context,
                                                     const Options& options = {}, A agreement = A());

/// The dataset, with so many elements made ahead of their use by a background thread.
template <class D>
[[nodiscard]] auto made_ahead(D dataset, std::size_t elements);

/// The dataset, with batches in the memory of the devices of these queues, whose replicas' steps so many of them may be
/// ahead of. Elements that are no batches stay as they are.
template <class Device, class D>
[[nodiscard]] auto uploaded(D dataset, const typename Device::Queues& queues, std::size_t replicas, std::size_t ahead);

}  // namespace dist::data
