/// Division of global batches into batches of replicas, by one of two rules.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/context/input_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/core/config.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/any_pass.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// Returns the cycle of the batch sizes of a worker's replicas (spec I04): entry `k * L + l` is the number of rows of
/// local replica `l` of L at step `k`, modulo the number of workers.
///
/// The `workers * local_replicas` entries sum to `global_batch` and differ by 1 at most. In every step the workers take
/// `global_batch` rows together. With one worker the entries are the replicas' shares of every step: {3, 3, 2} of 8
/// rows for 3 replicas. Throws InvalidArgument if a number is 0, or if `worker` is out of range.
[[nodiscard]] std::vector<std::size_t> batch_sizes_for_worker(std::size_t global_batch, std::size_t workers,
                                                              std::size_t local_replicas, std::size_t worker);

/// Returns the rows of a global batch of `rows` rows for replica `replica` of `replicas`: slices of ceil(rows /
/// replicas) rows; the last ones may be short or empty (spec I05, I24).
[[nodiscard]] constexpr IndexRange rows_of_replica(std::size_t rows, std::size_t replica,
                                                   std::size_t replicas) noexcept {
  const std::size_t slice = rows / replicas + (rows % replicas != 0 ? 1 : 0);
  const auto boundary = [&](std::size_t slices) { return slice * slices < rows ? slice * slices : rows; };
  return {boundary(replica), boundary(replica + 1)};
}

/// The rule by which the rows of global batches are divided among replicas.
enum class RebatchRule : unsigned char {
  /// All rows, concatenated and cut by the cycle of `batch_sizes_for_worker` (spec I03, "V2").
  by_cycle,
  /// Each batch separately, cut into equal slices (spec I05, "legacy").
  by_slices,
};

/// The division of a distributed dataset into one worker's batches.
struct RebatchPlan {
  /// The size of the global batches; 0 if unknown (spec I02).
  std::size_t batch_size = 0;
  PartialBatches partial_batches = PartialBatches::any;  ///< batches that may have fewer rows
  std::size_t workers = 1;                               ///< number of workers
  std::size_t worker = 0;                                ///< number of this worker
  std::size_t local_replicas = 1;                        ///< number of this worker's replicas
  /// The result of `shard_source`.
  AutoShardPolicy sharding = AutoShardPolicy::off;
  Remainder last_step = Remainder::keep;  ///< treatment of a last step without data for all replicas

  /// Returns the rule that applies. With one worker, only an explicit `data` selects slices (spec I06). The reference
  /// implementation also uses them under `automatic` and `hint`, which is a bug (spec I14).
  [[nodiscard]] constexpr RebatchRule rule() const noexcept {
    const bool by_element = sharding == AutoShardPolicy::data || (sharding == AutoShardPolicy::hint && workers > 1);
    return batch_size > 0 && !by_element ? RebatchRule::by_cycle : RebatchRule::by_slices;
  }

  /// The number of steps of this worker per batch. Under AutoShardPolicy::data every worker takes a part of each batch;
  /// otherwise a batch makes one step per worker.
  [[nodiscard]] constexpr std::size_t steps_per_batch(RebatchRule applied) const noexcept {
    return applied == RebatchRule::by_slices && sharding == AutoShardPolicy::data ? 1 : workers;
  }

  /// Returns the number of steps of `batches` global batches under `applied`. Known only if it follows from that number
  /// (spec I27).
  [[nodiscard]] constexpr Cardinality steps_of(Cardinality batches, RebatchRule applied) const {
    if (!batches.is_known() || batches.count() == 0) return batches;
    const bool drops = last_step == Remainder::drop;
    const bool by_slices = applied == RebatchRule::by_slices;
    bool all_count = false;  // true if every batch has rows for each step of each worker
    if (partial_batches == PartialBatches::none)
      all_count = by_slices ? !drops || batch_size > 0 : workers == 1 || batch_size >= workers * local_replicas;
    else if (partial_batches == PartialBatches::last)
      all_count = !drops && (by_slices || workers == 1);
    const std::size_t parts = steps_per_batch(applied);
    if (!all_count || batches.count() > std::numeric_limits<std::size_t>::max() / parts) return Cardinality::unknown();
    return Cardinality::known(batches.count() * parts);
  }
};

namespace detail {

/// A type-erased AgreementPass.
class AnyAgreementPass {
 public:
  AnyAgreementPass() = default;
  AnyAgreementPass(const AnyAgreementPass&) = delete;
  AnyAgreementPass& operator=(const AnyAgreementPass&) = delete;
  virtual ~AnyAgreementPass() = default;
  /// Returns true if `holds` is true on any worker.
  virtual bool any(bool holds) = 0;
  virtual void note_thrown_by_data(std::string_view what) = 0;
};

template <Agreement A>
class AgreementPassOf final : public AnyAgreementPass {
 public:
  explicit AgreementPassOf(const A& agreement) : pass_(agreement.begin()) {}
  bool any(bool holds) override {
    pass_.start(holds);
    return pass_.any();
  }
  void note_thrown_by_data(std::string_view what) override { pass_.note_thrown_by_data(what); }

 private:
  decltype(std::declval<const A&>().begin()) pass_;
};

}  // namespace detail

/// The common end of a pass on all workers (spec I24, I25): with Remainder::keep a step runs if any worker has data,
/// with Remainder::drop only if all do.
///
/// A worker with data already has the answer of `keep`, and one without data the answer of `drop`. It sends its answer
/// and continues, while the others wait. If all data are infinite, the workers do not communicate after the first step
/// (spec I23).
class AgreedEnd {
 public:
  /// The end of a pass of several workers. `data` is the length of this worker's data.
  template <Agreement A>
  AgreedEnd(const A& agreement, Cardinality data, Remainder last_step)
      : is_infinite_(data.is_infinite()), last_step_(last_step) {
    if constexpr (!std::same_as<A, NoAgreement>) pass_ = std::make_unique<detail::AgreementPassOf<A>>(agreement);
  }

  /// Returns `fetch()`: true if this worker has data for the next step. Reports its exceptions to the other workers.
  bool has_data(dist::detail::FunctionRef<bool()> fetch);
  /// Returns true if the next step runs; `has_data` is this worker's part. All workers must call it equally often.
  /// Throws InvalidArgument if infinite data end; exceptions of the agreement propagate.
  bool runs(bool has_data);
  /// True if the pass has ended. Does not communicate.
  [[nodiscard]] bool is_over() const noexcept { return state_ == State::ended; }

 private:
  enum class State : unsigned char { first, agreeing, endless, ended };

  bool any(bool holds) { return pass_ == nullptr ? holds : pass_->any(holds); }

  std::unique_ptr<detail::AnyAgreementPass> pass_;  // nullptr for a single worker
  bool is_infinite_;
  Remainder last_step_;
  State state_ = State::first;
};

/// A batch whose rows can be joined with the next one: batches of copied rows have the same views.
template <class Batch>
concept JoinableRows = HasRows<Batch> && Stackable<RowOf<Batch>> && HasRows<Batched<RowOf<Batch>>> &&
    std::same_as<RowsOf<Batched<RowOf<Batch>>>, RowsOf<Batch>>;

namespace detail {

struct BatchOps {
  ElementOps element;
  std::size_t (*count)(const void* batch);
  /// nullptr if batches are not poisoned.
  void (*poison)(void* batch, std::size_t first, std::size_t count);
  /// Copies `count` rows, starting at `first`, to row `place` of a batch of copies. Allocates `room` rows if `place` is
  /// 0.
  void (*copy)(const void* batch, std::size_t first, std::size_t count, void* copies, std::size_t place,
               std::size_t room);
  /// The operations on batches of copied rows. nullptr if rows cannot be joined.
  const BatchOps* copies;
};

template <HasRows Batch>
struct BatchFunctions {
  static std::size_t count(const void* batch) { return row_count(*static_cast<const Batch*>(batch)); }
  [[gnu::noinline]] static RowsOf<Batch> view(const void* batch, std::size_t first, std::size_t count) {
    return rows_of(*static_cast<const Batch*>(batch), first, count);
  }
  static void poison(void* batch, std::size_t first, std::size_t count) {
    poison_rows(*static_cast<Batch*>(batch), first, count);
  }
  static void copy(const void* batch, std::size_t first, std::size_t count, void* copies, std::size_t place,
                   std::size_t room) {
    using Rows = Stack<RowOf<Batch>>;
    const Batch& from = *static_cast<const Batch*>(batch);
    auto& to = *static_cast<Batched<RowOf<Batch>>*>(copies);
    if (place == 0) Rows::allocate(to, row_of(from, first), room);
    for (std::size_t row = 0; row < count; ++row) Rows::place(to, place + row, row_of(from, first + row));
  }
};

template <HasRows Batch>
[[nodiscard]] constexpr BatchOps make_batch_ops();
template <HasRows Batch>
inline constexpr BatchOps batch_ops = make_batch_ops<Batch>();
template <HasRows Batch>
constexpr BatchOps make_batch_ops() {
  using Functions = BatchFunctions<Batch>;
  BatchOps ops{element_ops<Batch>, Functions::count, poisons_batches ? Functions::poison : nullptr, nullptr, nullptr};
  if constexpr (JoinableRows<Batch>) {
    ops.copy = Functions::copy;
    ops.copies = &batch_ops<Batched<RowOf<Batch>>>;
  }
  return ops;
}

/// Type-erased rows of a batch, or of a batch of copied rows.
struct AnyRows {
  const void* batch = nullptr;
  bool are_copies = false;
  std::size_t first = 0;
  std::size_t count = 0;
};

template <HasRows Batch>
[[nodiscard]] RowsOf<Batch> typed_rows(const AnyRows& rows) {
  if constexpr (JoinableRows<Batch>)
    if (rows.are_copies) return BatchFunctions<Batched<RowOf<Batch>>>::view(rows.batch, rows.first, rows.count);
  return BatchFunctions<Batch>::view(rows.batch, rows.first, rows.count);
}

/// The rows of a worker's replicas in one pass, step by step.
class ReplicaRows {
 public:
  ReplicaRows() = default;
  ReplicaRows(const ReplicaRows&) = delete;
  ReplicaRows& operator=(const ReplicaRows&) = delete;
  virtual ~ReplicaRows() = default;
  /// Assigns each local replica its rows. Returns false at the end, or if an incomplete step must be dropped.
  virtual bool next(std::span<AnyRows> values) = 0;
  /// Returns 0 rows with the extents of the previous rows, unknown if there were none (spec I24).
  [[nodiscard]] virtual AnyRows no_rows() const = 0;
};

/// One pass under RebatchRule::by_slices. Under AutoShardPolicy::data, worker w of W takes slices w, w + W, … of every
/// batch; otherwise each worker takes all slices, in W steps.
[[nodiscard]] std::unique_ptr<ReplicaRows> sliced_steps(std::unique_ptr<AnyPass> upstream, const BatchOps& ops,
                                                        const RebatchPlan& plan);
/// One pass under RebatchRule::by_cycle, over joinable batches. A replica's rows are a view of one batch, or a copy if
/// they belong to several.
[[nodiscard]] std::unique_ptr<ReplicaRows> cycled_steps(std::unique_ptr<AnyPass> upstream, const BatchOps& ops,
                                                        const RebatchPlan& plan);
/// One pass under the rule of the plan. Batches that cannot be joined are sliced.
[[nodiscard]] std::unique_ptr<ReplicaRows> rebatched(std::unique_ptr<AnyPass> upstream, const BatchOps& ops,
                                                     const RebatchPlan& plan);
/// The batches of the replicas from one shared pipeline, or from one per replica.
[[nodiscard]] std::unique_ptr<ReplicaRows> batches_of_pipelines(std::vector<std::unique_ptr<AnyPass>> upstreams,
                                                                const BatchOps& ops, std::size_t replicas,
                                                                Remainder last_step);

/// Throws InvalidArgument unless there is one pipeline, or one per replica.
void require_pipelines(std::size_t pipelines, std::size_t replicas);
/// Returns the number of steps of two pipelines together. With Remainder::keep the longer one decides, with
/// Remainder::drop the shorter one.
[[nodiscard]] Cardinality steps_of_both(Cardinality a, Cardinality b, Remainder last_step);

/// Returns the part of the plan that does not depend on the dataset. Throws InvalidArgument if `local_replicas` is 0,
/// or not the same on all workers.
[[nodiscard]] RebatchPlan plan_of_worker(std::size_t local_replicas, const InputContext& context,
                                         const InputOptions& options);

/// The number of steps if the workers agree on each. `mine` is the number for this worker's data.
[[nodiscard]] Cardinality steps_agreed_on(Cardinality mine, const RebatchPlan& plan);

inline constinit dist::detail::Warning same_order_again{};

/// Counts the passes over all datasets of one type, to detect a dataset that is distributed again for every epoch: its
/// order is always the same, because each pass is epoch 0.
class Passes {
 public:
  /// Warns at the fourth pass over epoch 0 without an epoch 1: fewer may be separate datasets.
  void begin(std::uint64_t epoch) noexcept;

 private:
  std::atomic<int> first_epochs_{0};
  std::atomic<bool> came_further_{false};
};

/// The part of a pass of a distributed dataset that is independent of the type of its batches.
class AnyReplicaSteps {
 public:
  AnyReplicaSteps(std::unique_ptr<ReplicaRows> source, std::size_t replicas, AgreedEnd end);
  AnyReplicaSteps(AnyReplicaSteps&&) noexcept;
  AnyReplicaSteps& operator=(AnyReplicaSteps&&) noexcept;
  ~AnyReplicaSteps();

  /// See Resumable. Elements are steps, which depend on the number of workers but not of replicas. All workers must
  /// seek the same position.
  [[nodiscard]] std::uint64_t position() const noexcept { return given_; }

 protected:
  /// Returns the rows of the next step, or an empty span at the end.
  [[nodiscard]] std::span<const AnyRows> next_rows();
  /// Continues at `position` after the pass has returned `given` steps.
  void go_on(std::uint64_t given, std::uint64_t position);

 private:
  std::unique_ptr<ReplicaRows> source_;
  std::vector<AnyRows> rows_;
  AgreedEnd end_;
  std::uint64_t given_ = 0;
};

template <HasRows Batch>
class ReplicaSteps : public AnyReplicaSteps {
 public:
  using Value = PerReplica<RowsOf<Batch>>;
  using AnyReplicaSteps::AnyReplicaSteps;

  /// Assigns the next step, or returns false at the end. Throws ShapeMismatch if the parts of a batch differ in their
  /// number of rows, or if rows to join differ in shape. Exceptions of the agreement propagate.
  bool next(Value& values) {
    const std::span<const AnyRows> rows = this->next_rows();
    if (rows.empty()) return false;
    if (values.size() != rows.size()) values = Value(rows.size());
    for (std::size_t replica = 0; replica < rows.size(); ++replica) values[replica] = typed_rows<Batch>(rows[replica]);
    return true;
  }
  /// Returns the next step, or nothing at the end (spec I22).
  [[nodiscard]] std::optional<Value> get_next_as_optional() { return next_of<Value>(*this); }
};

}  // namespace detail

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/replica_batches.ipp>
#endif
