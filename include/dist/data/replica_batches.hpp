/// How global batches become the batches of replicas: the two rules, and which one applies.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <dist/context/per_replica.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/poison.hpp>
#include <dist/data/rows.hpp>
#include <dist/data/stack.hpp>

namespace dist::data {

/// How many rows each of the next batches of a worker's replicas has, over and over (spec I04): entry `k * L + l` is
/// the share of local replica `l` at step `k`, for k below the number of workers.
///
/// There are `workers * local_replicas` entries. They sum to `global_batch`; together the workers take `global_batch`
/// rows at every step; any two entries differ by 1 at most. For one worker the entries are the replicas' shares of
/// every step: {3, 3, 2} of 8 rows for 3 replicas. Throws InvalidArgument for no rows, workers or replicas, and for a
/// worker that is not among them.
[[nodiscard]] inline std::vector<std::size_t> batch_sizes_for_worker(std::size_t global_batch, std::size_t workers,
                                                                     std::size_t local_replicas, std::size_t worker) {
  if (global_batch == 0 || workers == 0 || local_replicas == 0)
    throw InvalidArgument("A global batch cannot be divided",
                          concat(global_batch, " rows for ", workers, " workers of ", local_replicas, " replicas"),
                          "All three must be 1 or more");
  if (worker >= workers)
    throw InvalidArgument("There is no such worker", concat("worker ", worker, " of ", workers),
                          "Count the workers from 0");
  const std::size_t replicas = workers * local_replicas;
  const std::size_t least = global_batch / replicas;
  const std::size_t larger = global_batch % replicas;  // so many shares have one row more
  std::vector<std::size_t> sizes(replicas);
  for (std::size_t entry = 0; entry < replicas; ++entry) {
    const std::size_t place = (entry + worker * local_replicas) % replicas;
    sizes[entry] = least + (place < larger ? 1 : 0);
  }
  return sizes;
}

/// The rows that replica `replica` of `replicas` receives of a global batch of `rows`: slices of ceil(rows / replicas),
/// the first ones full, the last ones possibly short or empty (spec I05, I24).
[[nodiscard]] constexpr IndexRange rows_of_replica(std::size_t rows, std::size_t replica,
                                                   std::size_t replicas) noexcept {
  const std::size_t slice = rows / replicas + (rows % replicas != 0 ? 1 : 0);
  const auto boundary = [&](std::size_t slices) { return slice * slices < rows ? slice * slices : rows; };
  return {boundary(replica), boundary(replica + 1)};
}

enum class RebatchRule : unsigned char {
  /// All rows, concatenated and cut by the cycle of `batch_sizes_for_worker` (spec I03, "V2").
  by_cycle,
  /// Each batch alone, cut into equal slices (spec I05, "legacy").
  by_slices,
};

/// How a worker's part of a distributed dataset is cut.
struct RebatchPlan {
  /// The size of the global batches; 0 when it is not known (spec I02).
  std::size_t batch_size = 0;
  PartialBatches partial_batches = PartialBatches::any;
  std::size_t workers = 1;
  std::size_t worker = 0;
  std::size_t local_replicas = 1;
  /// What `shard_source` returned.
  AutoShardPolicy sharding = AutoShardPolicy::off;
  Remainder last_step = Remainder::keep;

  /// With one worker only an explicit `data` asks for slices (spec I06). The reference system cuts slices there under
  /// `automatic` and `hint` as well, which is a mistake (spec I14).
  [[nodiscard]] constexpr RebatchRule rule() const noexcept {
    const bool by_element = sharding == AutoShardPolicy::data || (sharding == AutoShardPolicy::hint && workers > 1);
    return batch_size > 0 && !by_element ? RebatchRule::by_cycle : RebatchRule::by_slices;
  }

  /// Under AutoShardPolicy::data every worker has a part of each batch, otherwise the workers' batches are made of W.
  [[nodiscard]] constexpr std::size_t steps_per_batch(RebatchRule applied) const noexcept {
    return applied == RebatchRule::by_slices && sharding == AutoShardPolicy::data ? 1 : workers;
  }

  /// How many steps so many global batches make, under `applied`: a number as long as it follows from theirs (spec
  /// I27).
  [[nodiscard]] constexpr Cardinality steps_of(Cardinality batches, RebatchRule applied) const {
    if (!batches.is_known() || batches.count() == 0) return batches;
    const bool drops = last_step == Remainder::drop;
    const bool by_slices = applied == RebatchRule::by_slices;
    bool all_count = false;  // every batch gives each worker's step a row
    if (partial_batches == PartialBatches::none)
      all_count = by_slices ? !drops || batch_size > 0 : workers == 1 || batch_size >= workers * local_replicas;
    else if (partial_batches == PartialBatches::last)
      all_count = !drops && (by_slices || workers == 1);
    const std::size_t parts = steps_per_batch(applied);
    if (!all_count || batches.count() > std::numeric_limits<std::size_t>::max() / parts) return Cardinality::unknown();
    return Cardinality::known(batches.count() * parts);
  }
};

/// A batch of which rows can be joined with rows of the next one: a copy of them is a batch with the same kind of
/// views.
template <class Batch>
concept JoinableRows = HasRows<Batch> && Stackable<RowOf<Batch>> && HasRows<Batched<RowOf<Batch>>> &&
    std::same_as<RowsOf<Batched<RowOf<Batch>>>, RowsOf<Batch>>;

/// One pass over `D` under RebatchRule::by_slices. Under AutoShardPolicy::data this worker takes slices w, w + W, … of
/// every batch; otherwise all of them, in W steps.
template <Dataset D>
  requires HasRows<ElementOf<D>>
class SlicedSteps {
 public:
  SlicedSteps(IteratorOf<D> upstream, const RebatchPlan& plan) : upstream_(std::move(upstream)), plan_(plan) {}

  /// Gives `values`, one for each local replica, its rows. False at the end.
  bool next(PerReplica<RowsOf<ElementOf<D>>>& values) {
    if (part_ == 0 && !read_batch()) return false;
    const bool by_element = plan_.sharding == AutoShardPolicy::data;
    const std::size_t slices = plan_.workers * plan_.local_replicas;
    for (std::size_t replica = 0; replica < plan_.local_replicas; ++replica) {
      const std::size_t slice =
          by_element ? replica * plan_.workers + plan_.worker : part_ * plan_.local_replicas + replica;
      const IndexRange range = rows_of_replica(rows_, slice, slices);
      values[replica] = rows_of(batch_, range.begin, range.size());
    }
    if (!by_element && ++part_ == plan_.workers) part_ = 0;
    return true;
  }
  /// No rows, with the extents that rows had so far; 0 rows of nothing known where there were none (spec I24).
  [[nodiscard]] RowsOf<ElementOf<D>> no_rows() const { return rows_of(batch_, 0, 0); }

 private:
  bool read_batch() {
    if constexpr (detail::poisons_batches) detail::poison_rows(batch_, 0, rows_);
    do {
      if (!upstream_.next(batch_)) return false;
      rows_ = row_count(batch_);
    } while (!is_step(rows_));
    return true;
  }
  /// Whether a batch of so many rows is divided. An incomplete one has fewer than the batch size or, where that is not
  /// known, leaves a replica of any worker without rows.
  [[nodiscard]] bool is_step(std::size_t rows) const {
    if (rows == 0 || plan_.last_step == Remainder::keep) return rows > 0;
    if (plan_.batch_size > 0) return rows >= plan_.batch_size;
    const std::size_t slices = plan_.workers * plan_.local_replicas;
    return rows_of_replica(rows, slices - 1, slices).size() > 0;
  }

  IteratorOf<D> upstream_;
  RebatchPlan plan_;
  ElementOf<D> batch_{};
  std::size_t rows_ = 0;
  std::size_t part_ = 0;  // which of the batch's steps is next
};

/// One pass over `D` under RebatchRule::by_cycle. The rows of a replica are a view where they lie in one batch of `D`,
/// and are copied where they come from several.
template <Dataset D>
  requires JoinableRows<ElementOf<D>>
class CycledSteps {
  using Batch = ElementOf<D>;
  using Rows = RowsOf<Batch>;

 public:
  CycledSteps(IteratorOf<D> upstream, const RebatchPlan& plan)
      : upstream_(std::move(upstream)),
        sizes_(batch_sizes_for_worker(plan.batch_size, plan.workers, plan.local_replicas, plan.worker)),
        joined_(plan.local_replicas),
        last_step_(plan.last_step) {}

  /// Gives `values`, one for each local replica, its rows. False at the end: when no rows are left or, where an
  /// incomplete step is dropped, too few for this one.
  bool next(PerReplica<Rows>& values) {
    if (!begin_step() && (last_step_ == Remainder::keep || rows_of_step() > 0)) return false;
    bool complete = true;
    for (std::size_t replica = 0; replica < joined_.size(); ++replica) {
      const std::size_t share = sizes_[place_];
      if (++place_ == sizes_.size()) place_ = 0;
      values[replica] = take(share, joined_[replica]);
      complete = complete && row_count(values[replica]) == share;
    }
    return complete || last_step_ == Remainder::keep;
  }
  /// No rows, with the extents that rows had so far; 0 rows of nothing known where there were none (spec I24).
  [[nodiscard]] Rows no_rows() const { return rows_of(held_[filled_ == 0 ? 0 : filled_ - 1].batch, 0, 0); }

 private:
  struct Held {
    Batch batch{};
    std::size_t rows = 0;
  };
  using Copied = Batched<RowOf<Batch>>;

  /// The rows of all local replicas: 0 where a global batch has fewer rows than there are replicas.
  [[nodiscard]] std::size_t rows_of_step() const {
    std::size_t rows = 0;
    for (std::size_t replica = 0; replica < joined_.size(); ++replica) rows += sizes_[place_ + replica];
    return rows;
  }

  /// Releases the batches that the last step has used up. False when no rows are left.
  bool begin_step() {
    if constexpr (detail::poisons_batches) poison_last_step();
    if (head_ < filled_ && offset_ == held_[head_].rows) next_batch();
    for (std::size_t kept = head_; kept < filled_; ++kept) std::swap(held_[kept - head_], held_[kept]);
    filled_ -= head_;
    head_ = 0;
    return filled_ > 0 || read_batch();
  }

  /// Reads one more batch, after those that are held. The batches may move; their rows stay where they are.
  bool read_batch() {
    if (ended_) return false;
    if (filled_ == held_.size()) held_.emplace_back();
    Held& held = held_[filled_];
    do {
      ended_ = !upstream_.next(held.batch);
      if (ended_) return false;
      held.rows = row_count(held.batch);
    } while (held.rows == 0);
    ++filled_;
    ahead_ += held.rows;
    return true;
  }

  void poison_last_step() {
    for (std::size_t used = 0; used < head_; ++used) detail::poison_rows(held_[used].batch, 0, held_[used].rows);
    if (head_ < filled_) detail::poison_rows(held_[head_].batch, 0, offset_);
    for (Copied& joined : joined_) detail::poison_rows(joined, 0, row_count(joined));
  }

  void next_batch() {
    ++head_;
    offset_ = 0;
  }

  /// The next `share` rows, or as many as there are.
  Rows take(std::size_t share, Copied& joined) {
    while (ahead_ < share && read_batch()) {
    }
    const std::size_t count = ahead_ < share ? ahead_ : share;
    if (count == 0) return no_rows();
    if (offset_ == held_[head_].rows) next_batch();
    ahead_ -= count;
    if (held_[head_].rows - offset_ < count) return join(count, joined);
    const std::size_t first = offset_;
    offset_ += count;
    return rows_of(held_[head_].batch, first, count);
  }

  Rows join(std::size_t count, Copied& joined) {
    using Rowed = Stack<RowOf<Batch>>;
    Rowed::allocate(joined, row_of(held_[head_].batch, offset_), count);
    for (std::size_t row = 0; row < count; ++row) {
      if (offset_ == held_[head_].rows) next_batch();
      Rowed::place(joined, row, row_of(held_[head_].batch, offset_++));
    }
    return rows_of(joined, 0, count);
  }

  IteratorOf<D> upstream_;
  std::vector<std::size_t> sizes_;
  std::vector<Copied> joined_;                     // for each replica, the rows that come from several batches
  std::vector<Held> held_ = std::vector<Held>(2);  // the batches of this step, and places for more behind them
  std::size_t filled_ = 0;                         // so many of `held_` are batches
  std::size_t head_ = 0;                           // the one that rows are taken from,
  std::size_t offset_ = 0;                         // from this row on
  std::size_t ahead_ = 0;                          // rows read and not taken
  std::size_t place_ = 0;                          // in the cycle of sizes
  Remainder last_step_;
  bool ended_ = false;
};

namespace detail {

/// What makes steps by cycle: only of rows that can be joined.
template <class D>
struct CycledStepsOf {
  using Type = SlicedSteps<D>;
};
template <class D>
  requires JoinableRows<ElementOf<D>>
struct CycledStepsOf<D> {
  using Type = CycledSteps<D>;
};

}  // namespace detail

/// One pass over `D` under the rule that applies. Batches whose rows cannot be joined are sliced.
template <Dataset D>
  requires HasRows<ElementOf<D>>
class RebatchedSteps {
 public:
  [[nodiscard]] static constexpr RebatchRule rule(const RebatchPlan& plan) noexcept {
    return JoinableRows<ElementOf<D>> ? plan.rule() : RebatchRule::by_slices;
  }

  RebatchedSteps(IteratorOf<D> upstream, const RebatchPlan& plan) {
    if (rule(plan) == RebatchRule::by_cycle)
      by_cycle_.emplace(std::move(upstream), plan);
    else
      by_slices_.emplace(std::move(upstream), plan);
  }

  bool next(PerReplica<RowsOf<ElementOf<D>>>& values) {
    return by_cycle_ ? by_cycle_->next(values) : by_slices_->next(values);
  }
  /// Gives every replica a batch without rows: a step that runs for the data of others (spec I24).
  void next_without_rows(PerReplica<RowsOf<ElementOf<D>>>& values) const {
    for (auto& rows : values) rows = by_cycle_ ? by_cycle_->no_rows() : by_slices_->no_rows();
  }

 private:
  // One of them: std::variant would say so, and costs everybody's compiler more than the rest of this header.
  std::optional<SlicedSteps<D>> by_slices_;
  std::optional<typename detail::CycledStepsOf<D>::Type> by_cycle_;
};

}  // namespace dist::data
