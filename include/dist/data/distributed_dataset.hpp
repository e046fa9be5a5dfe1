#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <dist/context/input_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/data/agreed_end.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/auto_shard.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/replica_batches.hpp>
#include <dist/data/rows.hpp>
#include <dist/data/shuffle.hpp>

namespace dist::data {

/// Whether the elements of a batched dataset are made of rows.
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

inline constinit dist::detail::Warning same_order_again{};

/// The passes over all datasets of one type. A dataset that is distributed anew for every epoch begins with epoch 0 each
/// time, and so has the same order each time.
class Passes {
 public:
  /// Warns at the fourth first epoch, where no dataset came to a second: until then it may be several datasets.
  void begin(std::uint64_t epoch) noexcept {
    constexpr int most = 3;
    if (epoch > 0)
      came_further_.store(true, std::memory_order_relaxed);
    else if (first_epochs_.fetch_add(1, std::memory_order_relaxed) == most &&
             !came_further_.load(std::memory_order_relaxed))
      same_order_again.emit(
          "a dataset was distributed again for every epoch, and is shuffled alike each time: call distribute_dataset "
          "once, before the loop over epochs. DIST_WARNINGS=0 silences this.");
  }

 private:
  std::atomic<int> first_epochs_{0};
  std::atomic<bool> came_further_{false};
};

template <class D>
inline constinit Passes passes{};

}  // namespace detail

/// A batched dataset whose global batches are divided among the replicas of this worker. An element is a step: one
/// value per replica, views of its rows that stay valid until the next step: at contract level 2 (DIST_CONTRACT_LEVEL)
/// they are NaN or -1 from then on. Made by `distribute_dataset`.
///
/// Where the batch size is known, the rows of all batches are cut by the cycle of `batch_sizes_for_worker`, and rows of
/// a partial batch in the middle are joined by those of the next. Otherwise every batch is cut for itself. See
/// RebatchRule.
///
/// Where there are several workers `A` lets them agree on each step: it runs if any of their replicas has data, and the
/// others receive 0 rows (spec I24), or only if all have (spec I25). See AgreedEnd.
template <class D, class A = NoAgreement>
class DistributedDataset {
  static_assert(is_batched<D>,
                "distribute_dataset splits batches: add | dist::data::batch(global_batch_size) to the dataset");
  static_assert(!is_batched<D> || splits_into_rows<D>,
                "distribute_dataset splits batches into rows: the elements must be Tensors, TensorViews, or Examples, "
                "tuples or arrays of these");

 public:
  template <class... Arguments>
  explicit DistributedDataset(D, Arguments&&...) {}
};

template <Dataset D, Agreement A>
  requires(is_batched<D>&& splits_into_rows<D>)
class DistributedDataset<D, A> : public DatasetRange<DistributedDataset<D, A>> {
 public:
  using Value = PerReplica<RowsOf<ElementOf<D>>>;
  using Element = Value;
  static constexpr bool lends_elements = true;

  /// For a single worker. Throws InvalidArgument for zero replicas.
  DistributedDataset(D dataset, std::size_t replicas, const InputOptions& options = {})
      : DistributedDataset(std::move(dataset), replicas, InputContext{1, 0, replicas}, options) {}
  /// For worker `context.input_pipeline_id()`. Throws InvalidArgument for zero replicas, when the workers do not all have
  /// `local_replicas`, and as `auto_shard` does.
  DistributedDataset(D dataset, std::size_t local_replicas, const InputContext& context, const InputOptions& options,
                     A agreement = A())
      : dataset_(std::move(dataset)), agreement_(std::move(agreement)) {
    if (local_replicas == 0)
      throw InvalidArgument("A dataset is distributed over no replica", "the number of replicas is 0",
                            "Give the strategy a device");
    if (context.num_replicas_in_sync() != context.num_input_pipelines() * local_replicas)
      throw InvalidArgument("A dataset is distributed over workers that differ in their number of replicas",
                            concat(to_string(context), ", ", local_replicas, " of them here"),
                            "Give every worker the same number of replicas");
    plan_.workers = context.num_input_pipelines();
    plan_.worker = context.input_pipeline_id();
    single_pass_ = options.single_pass;
    plan_.local_replicas = local_replicas;
    plan_.last_step = options.last_step;
    plan_.sharding = shard_source(dataset_, options.auto_shard_policy, plan_.workers, plan_.worker);
    plan_.batch_size = known_batch_size(dataset_);
    plan_.partial_batches = partial_batches_of(dataset_);
  }

  class Iterator {
   public:
    Iterator(const DistributedDataset& dataset, std::uint64_t epoch)
        : dataset_(&dataset), epoch_(epoch), end_(dataset.agreed_end()) {
      steps_.emplace(dataset.dataset_.iterate(epoch), dataset.plan_);
    }

    /// As of a dataset's iterator. Throws ShapeMismatch when the parts of a batch differ in their number of rows, and
    /// when rows of different shape were to be joined; and what the agreement throws.
    bool next(Value& values) {
      if (end_.is_over()) return false;
      if (values.size() != dataset_->num_replicas()) values = Value(dataset_->num_replicas());
      const bool has_data = end_.has_data([&] { return steps_->next(values); });
      if (!end_.runs(has_data)) return false;
      if (!has_data) steps_->next_without_rows(values);
      ++given_;
      return true;
    }
    /// See Resumable: elements are steps, which depend on the number of workers and not on that of replicas. All workers
    /// seek the same position.
    [[nodiscard]] std::uint64_t position() const noexcept { return given_; }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      const RebatchPlan& plan = dataset_->plan_;
      // Batches of unknown sizes are cut again from the first one on.
      const std::uint64_t batches =
          plan.partial_batches == PartialBatches::any ? 0 : position / plan.steps_per_batch(dataset_->rebatch_rule());
      IteratorOf<D> upstream = dataset_->dataset_.iterate(epoch_);
      upstream.seek(batches);
      steps_.emplace(std::move(upstream), plan);
      end_ = dataset_->agreed_end();
      Value skipped(plan.local_replicas);
      given_ = batches * plan.steps_per_batch(dataset_->rebatch_rule());
      while (given_ < position && steps_->next(skipped)) ++given_;
      given_ = position;
    }
    /// The next step, or none at the end (spec I22).
    [[nodiscard]] std::optional<Value> get_next_as_optional() { return next_of<Value>(*this); }

   private:
    const DistributedDataset* dataset_;
    std::uint64_t epoch_;
    std::uint64_t given_ = 0;
    std::optional<RebatchedSteps<D>> steps_;
    AgreedEnd<A> end_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const {
    if constexpr (detail::has_shuffle<D>)
      if (!single_pass_) detail::passes<D>.begin(epoch);
    return Iterator{*this, epoch};
  }
  /// How many steps one epoch has (spec I27). Unknown where it depends on rows that are only counted in the pass:
  /// partial batches that are not at the end, batches that a filter leaves; and on what other workers have.
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality mine = plan_.steps_of(dataset_.cardinality(), RebatchedSteps<D>::rule(plan_));
    const bool as_others = plan_.sharding == AutoShardPolicy::off || plan_.sharding == AutoShardPolicy::data;
    if (std::same_as<A, NoAgreement> || plan_.workers == 1 || as_others) return mine;
    return mine.is_infinite() && plan_.last_step == Remainder::keep ? mine : Cardinality::unknown();
  }
  [[nodiscard]] std::size_t num_replicas() const noexcept { return plan_.local_replicas; }
  /// How the batches are cut.
  [[nodiscard]] RebatchRule rebatch_rule() const noexcept { return RebatchedSteps<D>::rule(plan_); }

 private:
  [[nodiscard]] AgreedEnd<A> agreed_end() const { return {agreement_, dataset_.cardinality(), plan_.last_step}; }

  D dataset_;
  bool single_pass_ = false;
  RebatchPlan plan_;
  [[no_unique_address]] A agreement_;
};

template <class D>
DistributedDataset(D, std::size_t, const InputOptions& = {}) -> DistributedDataset<D>;
template <class D>
DistributedDataset(D, std::size_t, const InputContext&, const InputOptions&) -> DistributedDataset<D>;
template <class D, class A>
DistributedDataset(D, std::size_t, const InputContext&, const InputOptions&, A) -> DistributedDataset<D, A>;

template <class D, class Options, Agreement A>
auto distribute_dataset(D dataset, std::size_t local_replicas, const InputContext& context, const Options& options,
                        A agreement) {
  constexpr bool one_pipeline = std::same_as<Options, InputOptions>;
  if constexpr (!one_pipeline)
    static_assert(
        one_pipeline,
        "distribute_dataset takes data::InputOptions: a pipeline for every replica needs a function that makes "
        "them, use distribute_datasets_from_function");
  else if constexpr (is_batched<D>)
    return DistributedDataset{PrefetchDataset<D>{std::move(dataset), options.fetch_ahead}, local_replicas, context,
                              options, std::move(agreement)};
  else
    return DistributedDataset<D>{std::move(dataset)};
}

}  // namespace dist::data
