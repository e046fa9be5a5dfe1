#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/replica_batches.hpp>

namespace dist::data {

DIST_INLINE std::vector<std::size_t> batch_sizes_for_worker(std::size_t global_batch, std::size_t workers,
                                                            std::size_t local_replicas, std::size_t worker) {
  if (global_batch == 0 || workers == 0 || local_replicas == 0)
    throw InvalidArgument("A global batch cannot be divided",
                          concat(global_batch, " rows for ", workers, " workers of ", local_replicas, " replicas"),
                          "Make all three 1 or more");
  if (worker >= workers)
    throw InvalidArgument("The worker does not exist", concat("worker ", worker, " of ", workers),
                          "Number the workers from 0");
  const std::size_t replicas = workers * local_replicas;
  const std::size_t least = global_batch / replicas;
  const std::size_t larger = global_batch % replicas;  // number of shares with one more row
  std::vector<std::size_t> sizes(replicas);
  for (std::size_t entry = 0; entry < replicas; ++entry) {
    const std::size_t place = (entry + worker * local_replicas) % replicas;
    sizes[entry] = least + (place < larger ? 1 : 0);
  }
  return sizes;
}

DIST_INLINE bool AgreedEnd::has_data(dist::detail::FunctionRef<bool()> fetch) {
  const auto note = [this](std::string_view what) {
    if (pass_ != nullptr) pass_->note_thrown_by_data(what);
  };
  try {
    return fetch();
  } catch (const std::exception& error) {
    note(error.what());
    throw;
  } catch (...) {
    note("an exception that is not a std::exception");
    throw;
  }
}

DIST_INLINE bool AgreedEnd::runs(bool has_data) {
  // Every worker takes part: its shard may be empty while the other workers' data repeat forever.
  if (state_ == State::first)
    state_ = pass_ != nullptr && !any(!is_infinite_ || !has_data) ? State::endless : State::agreeing;
  if (state_ == State::endless && !has_data)
    throw InvalidArgument("The data of a worker ended although its dataset is infinite",
                          "the other workers do not expect that, and would wait for this one",
                          "Make sure that the data of every worker has elements in each pass of repeat()");
  const auto agree = [&] { return last_step_ == Remainder::drop ? !any(!has_data) : any(has_data); };
  const bool runs = state_ == State::endless || (state_ == State::agreeing && agree());
  if (!runs) state_ = State::ended;
  return runs;
}

namespace detail {

class SlicedSteps final : public ReplicaRows {
 public:
  SlicedSteps(std::unique_ptr<AnyPass> upstream, const BatchOps& ops, const RebatchPlan& plan)
      : upstream_(std::move(upstream)), ops_(&ops), plan_(plan), batch_(ops.element) {}

  bool next(std::span<AnyRows> values) override {
    if (part_ == 0 && !read_batch()) return false;
    for (std::size_t replica = 0; replica < plan_.local_replicas; ++replica) values[replica] = slice_of(replica);
    if (plan_.sharding != AutoShardPolicy::data && ++part_ == plan_.workers) part_ = 0;
    return true;
  }
  [[nodiscard]] AnyRows no_rows() const override { return {.batch = batch_.get()}; }

 private:
  /// Not inlined: compilers would vectorise the few divisions.
  [[nodiscard, gnu::noinline]] AnyRows slice_of(std::size_t replica) const {
    const std::size_t slice = plan_.sharding == AutoShardPolicy::data ? replica * plan_.workers + plan_.worker
                                                                      : part_ * plan_.local_replicas + replica;
    const IndexRange range = rows_of_replica(rows_, slice, plan_.workers * plan_.local_replicas);
    return {.batch = batch_.get(), .first = range.begin, .count = range.size()};
  }
  bool read_batch() {
    if (ops_->poison != nullptr) ops_->poison(batch_.get(), 0, rows_);
    do {
      if (!upstream_->next(batch_.get())) return false;
      rows_ = ops_->count(batch_.get());
    } while (!is_step(rows_));
    return true;
  }
  /// True if a batch of `rows` rows makes a step. An incomplete batch has fewer rows than the batch size or, if
  /// unknown, leaves a replica of any worker without rows.
  [[nodiscard]] bool is_step(std::size_t rows) const {
    if (rows == 0 || plan_.last_step == Remainder::keep) return rows > 0;
    if (plan_.batch_size > 0) return rows >= plan_.batch_size;
    const std::size_t slices = plan_.workers * plan_.local_replicas;
    return rows_of_replica(rows, slices - 1, slices).size() > 0;
  }

  std::unique_ptr<AnyPass> upstream_;
  const BatchOps* ops_;
  RebatchPlan plan_;
  AnyElement batch_;
  std::size_t rows_ = 0;
  std::size_t part_ = 0;  // index of the batch's next step
};

class CycledSteps final : public ReplicaRows {
 public:
  CycledSteps(std::unique_ptr<AnyPass> upstream, const BatchOps& ops, const RebatchPlan& plan)
      : upstream_(std::move(upstream)),
        ops_(&ops),
        sizes_(batch_sizes_for_worker(plan.batch_size, plan.workers, plan.local_replicas, plan.worker)),
        last_step_(plan.last_step) {
    for (std::size_t replica = 0; replica < plan.local_replicas; ++replica) joined_.emplace_back(ops.copies->element);
    for (int places = 0; places < 2; ++places) held_.push_back({AnyElement{ops.element}});
  }

  bool next(std::span<AnyRows> values) override {
    if (!begin_step() && (last_step_ == Remainder::keep || rows_of_step() > 0)) return false;
    bool complete = true;
    for (std::size_t replica = 0; replica < joined_.size(); ++replica) {
      const std::size_t share = sizes_[place_];
      if (++place_ == sizes_.size()) place_ = 0;
      values[replica] = take(share, joined_[replica]);
      complete = complete && values[replica].count == share;
    }
    return complete || last_step_ == Remainder::keep;
  }
  [[nodiscard]] AnyRows no_rows() const override {
    return {.batch = held_[filled_ == 0 ? 0 : filled_ - 1].batch.get()};
  }

 private:
  struct Held {
    AnyElement batch;
    std::size_t rows = 0;
  };

  /// The number of rows of all local replicas; may be 0 for a small global batch.
  [[nodiscard]] std::size_t rows_of_step() const {
    std::size_t rows = 0;
    for (std::size_t replica = 0; replica < joined_.size(); ++replica) rows += sizes_[place_ + replica];
    return rows;
  }
  /// Releases the batches that the last step used up. Returns false if no rows are left.
  bool begin_step() {
    if (ops_->poison != nullptr) poison_last_step();
    if (head_ < filled_ && offset_ == held_[head_].rows) next_batch();
    for (std::size_t kept = head_; kept < filled_; ++kept) std::swap(held_[kept - head_], held_[kept]);
    filled_ -= head_;
    head_ = 0;
    return filled_ > 0 || read_batch();
  }
  /// Reads one more batch after the held ones.
  bool read_batch() {
    if (ended_) return false;
    if (filled_ == held_.size()) held_.push_back({AnyElement{ops_->element}});
    Held& held = held_[filled_];
    do {
      ended_ = !upstream_->next(held.batch.get());
      if (ended_) return false;
      held.rows = ops_->count(held.batch.get());
    } while (held.rows == 0);
    ++filled_;
    ahead_ += held.rows;
    return true;
  }
  void poison_last_step() {
    for (std::size_t used = 0; used < head_; ++used) ops_->poison(held_[used].batch.get(), 0, held_[used].rows);
    if (head_ < filled_) ops_->poison(held_[head_].batch.get(), 0, offset_);
    for (AnyElement& joined : joined_) ops_->copies->poison(joined.get(), 0, ops_->copies->count(joined.get()));
  }
  void next_batch() {
    ++head_;
    offset_ = 0;
  }
  /// Takes the next `share` rows, or the remaining ones.
  AnyRows take(std::size_t share, AnyElement& joined) {
    while (ahead_ < share && read_batch()) {
    }
    const std::size_t count = ahead_ < share ? ahead_ : share;
    if (count == 0) return no_rows();
    if (offset_ == held_[head_].rows) next_batch();
    ahead_ -= count;
    if (held_[head_].rows - offset_ < count) return join(count, joined);
    const std::size_t first = offset_;
    offset_ += count;
    return {.batch = held_[head_].batch.get(), .first = first, .count = count};
  }
  AnyRows join(std::size_t count, AnyElement& joined) {
    for (std::size_t row = 0; row < count;) {
      if (offset_ == held_[head_].rows) next_batch();
      const std::size_t rows = std::min(count - row, held_[head_].rows - offset_);
      ops_->copy(held_[head_].batch.get(), offset_, rows, joined.get(), row, count);
      offset_ += rows;
      row += rows;
    }
    return {.batch = joined.get(), .are_copies = true, .count = count};
  }

  std::unique_ptr<AnyPass> upstream_;
  const BatchOps* ops_;
  std::vector<std::size_t> sizes_;
  std::vector<AnyElement> joined_;  // for each replica, rows copied from several batches
  std::vector<Held> held_;          // the batches of this step, and free slots
  std::size_t filled_ = 0;          // number of batches in `held_`
  std::size_t head_ = 0;            // the current batch,
  std::size_t offset_ = 0;          // its next row
  std::size_t ahead_ = 0;           // rows read but not taken
  std::size_t place_ = 0;           // in the cycle of sizes
  Remainder last_step_;
  bool ended_ = false;
};

class PipelineBatches final : public ReplicaRows {
 public:
  PipelineBatches(std::vector<std::unique_ptr<AnyPass>> upstreams, const BatchOps& ops, std::size_t replicas,
                  Remainder last_step)
      : upstreams_(std::move(upstreams)), ops_(&ops), last_step_(last_step) {
    for (std::size_t replica = 0; replica < replicas; ++replica) batches_.push_back({AnyElement{ops.element}});
  }

  bool next(std::span<AnyRows> values) override {
    std::size_t filled = 0;
    for (std::size_t replica = 0; replica < batches_.size(); ++replica) {
      Held& held = batches_[replica];
      void* const batch = held.batch.get();
      if (ops_->poison != nullptr && held.has_batch) ops_->poison(batch, 0, ops_->count(batch));
      held.has_batch = upstreams_[upstreams_.size() == 1 ? 0 : replica]->next(batch);
      if (!held.has_batch) continue;
      ++filled;
      like_ = replica;
    }
    for (std::size_t replica = 0; replica < batches_.size(); ++replica) {
      const Held& held = batches_[replica];
      values[replica] =
          held.has_batch ? AnyRows{.batch = held.batch.get(), .count = ops_->count(held.batch.get())} : no_rows();
    }
    return filled == batches_.size() || (filled > 0 && last_step_ == Remainder::keep);
  }
  [[nodiscard]] AnyRows no_rows() const override { return {.batch = batches_[like_].batch.get()}; }

 private:
  struct Held {
    AnyElement batch;
    bool has_batch = false;
  };

  std::vector<std::unique_ptr<AnyPass>> upstreams_;
  const BatchOps* ops_;
  std::vector<Held> batches_;
  std::size_t like_ = 0;  // the last replica that had a batch
  Remainder last_step_;
};

DIST_INLINE std::unique_ptr<ReplicaRows> sliced_steps(std::unique_ptr<AnyPass> upstream, const BatchOps& ops,
                                                      const RebatchPlan& plan) {
  return std::make_unique<SlicedSteps>(std::move(upstream), ops, plan);
}

DIST_INLINE std::unique_ptr<ReplicaRows> cycled_steps(std::unique_ptr<AnyPass> upstream, const BatchOps& ops,
                                                      const RebatchPlan& plan) {
  return std::make_unique<CycledSteps>(std::move(upstream), ops, plan);
}

DIST_INLINE std::unique_ptr<ReplicaRows> rebatched(std::unique_ptr<AnyPass> upstream, const BatchOps& ops,
                                                   const RebatchPlan& plan) {
  const bool cycled = ops.copies != nullptr && plan.rule() == RebatchRule::by_cycle;
  return (cycled ? cycled_steps : sliced_steps)(std::move(upstream), ops, plan);
}

DIST_INLINE std::unique_ptr<ReplicaRows> batches_of_pipelines(std::vector<std::unique_ptr<AnyPass>> upstreams,
                                                              const BatchOps& ops, std::size_t replicas,
                                                              Remainder last_step) {
  return std::make_unique<PipelineBatches>(std::move(upstreams), ops, replicas, last_step);
}

DIST_INLINE void require_pipelines(std::size_t pipelines, std::size_t replicas) {
  if (replicas == 0 || (pipelines != 1 && pipelines != replicas))
    throw InvalidArgument("The number of pipelines does not fit the number of replicas",
                          concat(pipelines, " pipelines for ", replicas, " replicas"),
                          "Make one pipeline, or one for each replica");
}

DIST_INLINE Cardinality steps_of_both(Cardinality a, Cardinality b, Remainder last_step) {
  const bool keeps = last_step == Remainder::keep;
  if (a.is_infinite() || b.is_infinite()) return keeps ? Cardinality::infinite() : a.is_infinite() ? b : a;
  if (!a.is_known() || !b.is_known()) return Cardinality::unknown();
  return Cardinality::known(keeps ? std::max(a.count(), b.count()) : std::min(a.count(), b.count()));
}

DIST_INLINE RebatchPlan plan_of_worker(std::size_t local_replicas, const InputContext& context,
                                       const InputOptions& options) {
  if (local_replicas == 0)
    throw InvalidArgument("A dataset is distributed over zero replicas", "the number of replicas is 0",
                          "Give the strategy a device");
  if (context.num_replicas_in_sync() != context.num_input_pipelines() * local_replicas)
    throw InvalidArgument("A dataset is distributed over workers that differ in their number of replicas",
                          concat(to_string(context), ", ", local_replicas, " of them here"),
                          "Give every worker the same number of replicas");
  return {.workers = context.num_input_pipelines(),
          .worker = context.input_pipeline_id(),
          .local_replicas = local_replicas,
          .last_step = options.last_step};
}

DIST_INLINE Cardinality steps_agreed_on(Cardinality mine, const RebatchPlan& plan) {
  const bool as_others = plan.sharding == AutoShardPolicy::off || plan.sharding == AutoShardPolicy::data;
  if (plan.workers == 1 || as_others) return mine;
  return mine.is_infinite() && plan.last_step == Remainder::keep ? mine : Cardinality::unknown();
}

DIST_INLINE void Passes::begin(std::uint64_t epoch) noexcept {
  constexpr int most = 3;
  if (epoch > 0)
    came_further_.store(true, std::memory_order_relaxed);
  else if (first_epochs_.fetch_add(1, std::memory_order_relaxed) == most &&
           !came_further_.load(std::memory_order_relaxed))
    same_order_again.emit(
        "a dataset was distributed again for every epoch, and is shuffled in the same order each time: call "
        "distribute_dataset once, before the loop over epochs. DIST_WARNINGS=0 silences this.");
}

DIST_INLINE AnyReplicaSteps::AnyReplicaSteps(std::unique_ptr<ReplicaRows> source, std::size_t replicas, AgreedEnd end)
    : source_(std::move(source)), rows_(replicas), end_(std::move(end)) {}
DIST_INLINE_DEFAULT AnyReplicaSteps::AnyReplicaSteps(AnyReplicaSteps&&) noexcept = default;
DIST_INLINE_DEFAULT AnyReplicaSteps& AnyReplicaSteps::operator=(AnyReplicaSteps&&) noexcept = default;
DIST_INLINE_DEFAULT AnyReplicaSteps::~AnyReplicaSteps() = default;

DIST_INLINE std::span<const AnyRows> AnyReplicaSteps::next_rows() {
  if (end_.is_over()) return {};
  const bool has_data = end_.has_data([this] { return source_->next(rows_); });
  if (!end_.runs(has_data)) return {};
  if (!has_data) std::fill(rows_.begin(), rows_.end(), source_->no_rows());
  ++given_;
  return rows_;
}

DIST_INLINE void AnyReplicaSteps::go_on(std::uint64_t given, std::uint64_t position) {
  while (given < position && source_->next(rows_)) ++given;
  given_ = position;
}

}  // namespace detail

}  // namespace dist::data
