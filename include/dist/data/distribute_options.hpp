/// Options for the distribution of datasets to the replicas of a strategy.
#pragma once

#include <cstddef>

#include <dist/context/input_context.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/batch_size.hpp>

namespace dist::data {

/// The division of the data among W workers (spec I07).
enum class AutoShardPolicy : signed char {
  /// Every worker reads everything (spec I12).
  off = -1,
  /// Like `file` if the source reads files, at least one per worker; otherwise like `data` (spec I10).
  automatic = 0,
  /// Every worker reads every W-th file (spec I08).
  file = 1,
  /// Every worker reads everything and keeps every W-th element (spec I09).
  data = 2,
  /// Shards only at `shard(shard_hint)` in the pipeline (spec I11).
  hint = 3,
};

/// The options of `distribute_dataset`, which makes one pipeline per worker (spec I16).
struct InputOptions {
  /// The division of the data among workers (spec I08).
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::automatic;
  /// The number of batches that a background thread prefetches; 0 makes each batch on demand.
  std::size_t fetch_ahead = 1;
  /// The treatment of a last step that does not fill the batches of all replicas (spec I24, I25).
  Remainder last_step = Remainder::keep;
  /// True for a single pass, e.g. an evaluation. Disables the warning about a shuffled dataset that is distributed
  /// again.
  bool single_pass = false;
};

/// Option of `distribute_datasets_from_function`: one pipeline per worker, whose elements go to its replicas in turn
/// (spec I17).
struct PipelinePerWorker {
  /// The treatment of a last step that does not have an element for each replica (spec I25).
  Remainder last_step = Remainder::keep;
};

/// Option of `distribute_datasets_from_function` with one worker: one pipeline per replica (spec I18).
struct PipelinePerReplica {
  /// The number of elements that a background thread prefetches for each replica; 0 makes each element on demand.
  std::size_t fetch_ahead = 1;
  /// The treatment of a last step in which some replicas have no element (spec I25).
  Remainder last_step = Remainder::keep;
};

// Functions for the methods of strategies. Defined in <dist/data/distributed_dataset.hpp>,
// <dist/data/distributed_pipelines.hpp>, <dist/data/prefetch.hpp> and <dist/data/uploaded.hpp>, which only programs
// with datasets compile.

/// Divides the global batches of `dataset` among the replicas of this worker, and prefetches `options.fetch_ahead`
/// batches (spec I01, I15). Implements `distribute_dataset` of strategies with several replicas.
///
/// Call it once, outside the loop over epochs: every loop over the result is a new epoch with a new shuffle (spec I31).
/// `agreement` connects several workers. Throws like DistributedDataset's constructors.
template <class D, class Options = InputOptions, Agreement A = NoAgreement>
[[nodiscard, gnu::noinline]] auto distribute_dataset(D dataset, std::size_t local_replicas, const InputContext& context,
                                                     const Options& options = {}, A agreement = A());

/// Calls `fn` for datasets with the batch size of one replica:
/// `batch(context.get_per_replica_batch_size(global_batch_size))`. Each step takes one element per local replica; the
/// datasets are neither sharded nor rebatched (spec I17).
///
/// With PipelinePerWorker, `fn` is called once, with `context`, and its dataset is prefetched only if it ends in
/// `prefetch`. With PipelinePerReplica, it is called once per replica, in order, with the replica's number as
/// `input_pipeline_id` (spec I18).
///
/// Call it once, outside the loop over epochs: every loop over the result is a new epoch (spec I31). `agreement`
/// connects several workers. Throws InvalidArgument if `local_replicas` is 0, or for a pipeline per replica with
/// several workers; exceptions of `fn` propagate.
template <class Fn, class Options = PipelinePerWorker, Agreement A = NoAgreement>
[[nodiscard]] auto distribute_datasets_from_function(Fn&& fn, std::size_t local_replicas, const InputContext& context,
                                                     const Options& options = {}, A agreement = A());

/// Returns the dataset with a background thread that prefetches elements.
template <class D>
[[nodiscard]] auto made_ahead(D dataset, std::size_t elements);

/// Returns the dataset with its batches copied to the devices of these queues, up to `ahead` batches before the
/// replicas use them. Other elements are unchanged.
template <class Device, class D>
[[nodiscard]] auto uploaded(D dataset, const typename Device::Queues& queues, std::size_t replicas, std::size_t ahead);

}  // namespace dist::data
