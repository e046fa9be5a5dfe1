#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/context/input_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/any_pass.hpp>
#include <dist/data/auto_shard.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/replica_batches.hpp>
#include <dist/data/rows.hpp>
#include <dist/data/shuffle.hpp>

namespace dist::data {

/// True if the elements of a batched dataset are made of rows.
template <class D>
inline constexpr bool splits_into_rows = [] {
  if constexpr (is_batched<D>)
    return HasRows<ElementOf<D>>;
  else
    return false;
}();

namespace detail {

template <class T>
inline constexpr bool is_shuffle_dataset = false;
template <class D>
inline constexpr bool is_shuffle_dataset<ShuffleDataset<D>> = true;
struct IsShuffle {
  template <class Step>
  static constexpr bool of = is_shuffle_dataset<Step>;
};
template <class D>
inline constexpr bool has_shuffle = has_step<D, IsShuffle>();

template <class D>
inline constinit Passes passes{};

}  // namespace detail

/// A batched dataset whose global batches are divided among the replicas of this worker. An element is a step: one
/// value per replica, made of views that are valid until the next step. At contract level 2 (DIST_CONTRACT_LEVEL)
/// expired views contain NaN or -1. Made by `distribute_dataset`.
///
/// If the batch size is known, rows are cut by the cycle of `batch_sizes_for_worker`, and a partial batch in the middle
/// is joined with the next one. Otherwise every batch is cut separately. See RebatchRule.
///
/// Several workers agree on each step by `A`: it runs if any replica has data, and the others receive 0 rows (spec
/// I24), or only if all have data (spec I25). See AgreedEnd.
template <class D, class A = NoAgreement>
class DistributedDataset {
  static_assert(is_batched<D>,
                "distribute_dataset splits batches: add | dist::data::batch(global_batch_size) to the dataset");
  static_assert(!is_batched<D> || splits_into_rows<D>,
                "distribute_dataset splits batches into rows: the elements must be Tensors, TensorViews, or Examples, "
                "tuples or arrays of these");

 public:
  /// Fails to compile with the static assertions above.
  template <class... Arguments>
  explicit DistributedDataset(D, Arguments&&...) {}
};

/// The implementation for batches of rows.
template <Dataset D, Agreement A>
  requires(is_batched<D>&& splits_into_rows<D>)
class DistributedDataset<D, A> : public DatasetRange<DistributedDataset<D, A>> {
 public:
  /// The value of one step: views of rows for each local replica.
  using Value = PerReplica<RowsOf<ElementOf<D>>>;
  using Element = Value;
  static constexpr bool lends_elements = true;

  /// For a single worker. Throws InvalidArgument if `replicas` is 0.
  DistributedDataset(D dataset, std::size_t replicas, const InputOptions& options = {})
      : DistributedDataset(std::move(dataset), replicas, InputContext{1, 0, replicas}, options) {}
  /// For worker `context.input_pipeline_id()`. Throws InvalidArgument if `local_replicas` is 0, or not the same on all
  /// workers, and like `auto_shard`.
  DistributedDataset(D dataset, std::size_t local_replicas, const InputContext& context, const InputOptions& options,
                     A agreement = A())
      : dataset_(std::move(dataset)),
        single_pass_(options.single_pass),
        plan_(detail::plan_of_worker(local_replicas, context, options)),
        agreement_(std::move(agreement)) {
    plan_.sharding = shard_source(dataset_, options.auto_shard_policy, plan_.workers, plan_.worker);
    plan_.batch_size = known_batch_size(dataset_);
    plan_.partial_batches = partial_batches_of(dataset_);
  }

  /// One pass over the steps.
  class Iterator : public detail::ReplicaSteps<ElementOf<D>> {
    using Steps = detail::ReplicaSteps<ElementOf<D>>;

   public:
    Iterator(const DistributedDataset& dataset, std::uint64_t epoch)
        : Steps(dataset.steps(detail::any_pass(dataset.dataset_, epoch))), dataset_(&dataset), epoch_(epoch) {}

    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      const RebatchPlan& plan = dataset_->plan_;
      const std::size_t steps_per_batch = plan.steps_per_batch(dataset_->rebatch_rule());
      // Batches of unknown sizes are cut again from the first one on.
      const std::uint64_t batches = plan.partial_batches == PartialBatches::any ? 0 : position / steps_per_batch;
      static_cast<Steps&>(*this) = dataset_->steps(detail::any_pass(dataset_->dataset_, epoch_, batches));
      this->go_on(batches * steps_per_batch, position);
    }

   private:
    const DistributedDataset* dataset_;
    std::uint64_t epoch_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const {
    if constexpr (detail::has_shuffle<D>)
      if (!single_pass_) detail::passes<D>.begin(epoch);
    return Iterator{*this, epoch};
  }
  /// The number of steps of one epoch (spec I27). Unknown if it depends on rows that are counted in the pass (partial
  /// batches before the end, a filter) or on other workers.
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality mine = plan_.steps_of(dataset_.cardinality(), rebatch_rule());
    return std::same_as<A, NoAgreement> ? mine : detail::steps_agreed_on(mine, plan_);
  }
  /// The number of replicas of this worker.
  [[nodiscard]] std::size_t num_replicas() const noexcept { return plan_.local_replicas; }
  /// The division of batches into steps, after the check that rows of different batches can be joined.
  [[nodiscard]] RebatchRule rebatch_rule() const noexcept {
    return JoinableRows<ElementOf<D>> ? plan_.rule() : RebatchRule::by_slices;
  }

 private:
  [[nodiscard]] detail::ReplicaSteps<ElementOf<D>> steps(std::unique_ptr<detail::AnyPass> upstream) const {
    return {detail::rebatched(std::move(upstream), detail::batch_ops<ElementOf<D>>, plan_),
            plan_.local_replicas,
            {agreement_, dataset_.cardinality(), plan_.last_step}};
  }

  D dataset_;
  bool single_pass_ = false;
  RebatchPlan plan_;
  [[no_unique_address]] A agreement_;
};

/// Deduces the dataset of a single worker.
template <class D>
DistributedDataset(D, std::size_t, const InputOptions& = {}) -> DistributedDataset<D>;
/// Deduces the dataset of a worker without agreement.
template <class D>
DistributedDataset(D, std::size_t, const InputContext&, const InputOptions&) -> DistributedDataset<D>;
/// Deduces the dataset of a worker with agreement.
template <class D, class A>
DistributedDataset(D, std::size_t, const InputContext&, const InputOptions&, A) -> DistributedDataset<D, A>;

template <class D, class Options, Agreement A>
auto distribute_dataset(D dataset, std::size_t local_replicas, const InputContext& context, const Options& options,
                        A agreement) {
  constexpr bool one_pipeline = std::same_as<Options, InputOptions>;
  if constexpr (!one_pipeline)
    static_assert(one_pipeline,
                  "distribute_dataset takes data::InputOptions: for one pipeline per replica, use "
                  "distribute_datasets_from_function with a function that makes them");
  else if constexpr (is_batched<D>)
    return DistributedDataset{PrefetchDataset<D>{std::move(dataset), options.fetch_ahead}, local_replicas, context,
                              options, std::move(agreement)};
  else
    return DistributedDataset<D>{std::move(dataset)};
}

}  // namespace dist::data
