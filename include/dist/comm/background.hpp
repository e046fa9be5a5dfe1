#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/call_sequence.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/future.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/threads.hpp>
#include <dist/core/trace.hpp>
#include <dist/device/service_thread.hpp>
#include <dist/device/wait.hpp>

namespace dist {

/// The thread that performs BackgroundCollectives.
enum class BackgroundProgress : unsigned char {
  by_a_thread,    ///< a dedicated thread, immediately
  while_waiting,  ///< the waiting thread: for programs in which no other thread may communicate
};

/// Collectives that run while the caller computes, one after another in the order of their start, which must be the
/// same on all members. `Ops` are the collectives of a group without other users. In a group of one (SelfCollectives),
/// only copies within this process are reduced.
///
/// A timeout, a failed peer or a different call ends a collective with the exception of the group; waits for it or for
/// a later collective throw this exception. The group is then broken and has to be created again, because its members
/// may have stopped at different calls. A group of one continues after `cancel`.
template <ReportsFailures Ops>
class BackgroundCollectives {
  using Record = typename Ops::Record;
  /// Number of a started collective, ascending modulo 2^32.
  using Ticket = std::uint32_t;

 public:
  /// A started collective: a Future that must not outlive its BackgroundCollectives. Copies refer to the same
  /// collective; several threads may wait. Default-constructed: nothing to wait for.
  class Started {
   public:
    Started() = default;

    /// Waits for this collective and all started before it. Throws the exception that ended one of them, or
    /// InvalidArgument if `cancel` dropped this one. With BackgroundProgress::while_waiting, `performs` must be true
    /// only on the thread that may communicate.
    void wait(bool performs = true) const {
      if (all_ != nullptr) all_->wait(ticket_, performs);
    }
    [[nodiscard]] bool is_done() const noexcept { return all_ == nullptr || all_->is_done(ticket_); }

   private:
    friend class BackgroundCollectives;
    Started(BackgroundCollectives& all, Ticket ticket) noexcept : all_(&all), ticket_(ticket) {}

    BackgroundCollectives* all_ = nullptr;
    Ticket ticket_ = 0;
  };

  /// Throws OutOfMemory if the system cannot create a thread.
  explicit BackgroundCollectives(Ops ops, BackgroundProgress progress = BackgroundProgress::by_a_thread)
      : ops_(std::move(ops)), progress_(progress), tasks_(16) {
    if (progress == BackgroundProgress::by_a_thread)
      thread_ = detail::start_service_thread("background collectives", [this] { work(); });
  }
  BackgroundCollectives(const BackgroundCollectives&) = delete;
  BackgroundCollectives& operator=(const BackgroundCollectives&) = delete;
  ~BackgroundCollectives() {
    if (!thread_.joinable()) return;
    call_thread();
    thread_.join();
  }

  /// True if collectives progress before the caller waits for them.
  [[nodiscard]] bool overlaps() const noexcept { return progress_ == BackgroundProgress::by_a_thread; }
  /// The group's collectives. Do not call them while a started collective is pending.
  [[nodiscard]] const Ops& ops() const noexcept { return ops_; }

  /// Begins a run of the caller; `alone` if the other processes do not take part. Collectives of different runs never
  /// match. No thread may start collectives or wait during this call or `end_run`.
  void begin_run(bool alone) noexcept {
    const std::lock_guard lock{mutex_};
    alone_ = alone;
    if (!alone) ++runs_;
  }
  void end_run() noexcept {
    const std::lock_guard lock{mutex_};
    alone_ = false;
  }

  /// Starts to replace `values` by their reduction over the members. They must stay valid and unchanged until the wait.
  /// A collective call.
  template <class T, ReduceOp<T> Op>
  Started start_all_reduce(Op, std::span<T> values, const ProfilerLabel& label = {}) {
    return push({.reduction = &Ops::template record<T, Op>(),
                 .values = values.data(),
                 .elements = {0, values.size()},
                 .label = label});
  }
  /// Starts to replace `elements` of each array in `copies` by the reduction over the copies of all members, this
  /// process's copies first, in order. All members must have the same number of copies. Arrays and pointers must stay
  /// valid and unchanged until the wait. A collective call.
  template <class T, ReduceOp<T> Op>
  Started start_all_reduce(Op, std::span<T* const> copies, IndexRange elements, const ProfilerLabel& label = {}) {
    DIST_EXPECT(!copies.empty());
    return push({.reduction = &Ops::template record<T, Op>(),
                 .copies = copies.data(),
                 .count = copies.size(),
                 .elements = elements,
                 .label = label});
  }

  /// Waits for running collectives and drops the others, for a caller that exits early. No other thread may start or
  /// wait meanwhile.
  void cancel() noexcept;

  /// Waits for running collectives, then reports this member's failure to the others, instead of taking part in the
  /// next collective. Breaks a group of several members. No other thread may start or wait meanwhile. Does nothing in a
  /// run of this process alone.
  void cancel(const std::exception& error) noexcept;
  /// The number of completed collectives, modulo 2^32.
  [[nodiscard]] std::uint32_t done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// The number of calls of `cancel(error)`; each may leave collectives incomplete.
  [[nodiscard]] std::size_t failures() const noexcept {
    const std::lock_guard lock{mutex_};
    return failures_;
  }
  /// True if a failure broke the group.
  [[nodiscard]] bool is_broken() const noexcept {
    const std::lock_guard lock{mutex_};
    return failure_ != nullptr;
  }
  /// Throws the failure that broke the group, or WrongStrategy in a run of this process alone.
  void require_whole() const;

 private:
  struct Task {
    const Record* reduction = nullptr;
    void* values = nullptr;        // values of this process, or
    const void* copies = nullptr;  // array of pointers to its copies
    std::size_t count = 0;         // of copies
    IndexRange elements{};
    ProfilerLabel label{};
    std::uint64_t runs = 0;  // runs begun before the start
  };

  [[nodiscard]] bool is_alone() const noexcept {
    const std::lock_guard lock{mutex_};
    return alone_;
  }
  /// Lets the communicator count the first `runs` runs. While there are tasks, only the performing thread may call it.
  void begin_runs(std::uint64_t runs) {
    for (; runs_seen_ != runs; ++runs_seen_) ops_.communicator().begin_run(0);
  }

  [[nodiscard]] static bool before(Ticket one, Ticket other) noexcept {
    return static_cast<std::int32_t>(one - other) < 0;
  }

  [[nodiscard]] bool is_done(Ticket ticket) const noexcept {
    return !before(done_.load(std::memory_order_acquire), ticket);
  }
  void wait(Ticket ticket, bool performs);
  void await(Ticket ticket, bool performs);

  Started push(Task task);

  /// Wakes the thread for a task, or to end it.
  void call_thread() noexcept {
    calls_.fetch_add(1, std::memory_order_release);
    calls_.notify_one();
  }
  void work() noexcept;
  /// Performs the first task. Called only by the dedicated thread, or the thread that may communicate.
  void perform_first() noexcept;
  void fail(std::exception_ptr why, Ticket ticket) noexcept {
    failure_ = std::move(why);
    failed_ = ticket;
  }

  void perform(const Task& task);
  /// Reduces in the accumulator type, if necessary in scratch memory, so that values are rounded only once.
  void reduce_copies(const Record& reduction, const detail::OperandsOfMembers<std::byte*>& copies, std::size_t members,
                     std::size_t count);

  Ops ops_;
  BackgroundProgress progress_;
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
  std::size_t first_ = 0;
  std::size_t waiting_ = 0;
  Ticket started_ = 0;
  std::exception_ptr failure_;
  Ticket failed_ = 0;  // first failed collective
  std::size_t failures_ = 0;
  bool drops_ = false;
  Ticket first_dropped_ = 1;  // last consecutive range of dropped collectives
  Ticket last_dropped_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t runs_seen_ = 0;  // runs that the communicator has counted
  bool alone_ = false;           // in a run of this process alone
  AlignedBuffer<std::byte> scratch_;
  std::atomic<std::uint32_t> calls_{0};  // wake-ups of the thread: one per task, and one to end it
  std::atomic<Ticket> done_{0};
  detail::JoinedThread thread_;  // last: uses all other members
};

template <ReportsFailures Ops>
void BackgroundCollectives<Ops>::cancel() noexcept {
  const Ticket last = [&] {
    const std::lock_guard lock{mutex_};
    drops_ = true;
    return started_;
  }();
  await(last, true);
  const std::lock_guard lock{mutex_};
  drops_ = false;
}

template <ReportsFailures Ops>
void BackgroundCollectives<Ops>::cancel(const std::exception& error) noexcept {
  if (is_alone()) return;
  cancel();
  begin_runs(runs_);
  ops_.cancel(FailureNotice{error});
  const std::lock_guard lock{mutex_};
  ++failures_;
  if (ops_.communicator().size() == 1)
    failure_ = nullptr;
  else if (!failure_)
    fail(std::make_exception_ptr(InvalidArgument(
             "Background collectives were used after a failure", error.what(),
             "Create the object that uses them, such as nn::OverlappedAllReduce, again on all workers")),
         started_);
}

template <ReportsFailures Ops>
void BackgroundCollectives<Ops>::require_whole() const {
  const std::lock_guard lock{mutex_};
  if (failure_) std::rethrow_exception(failure_);
  if (alone_) CallSequence::refuse_alone("a background collective");
}

template <ReportsFailures Ops>
void BackgroundCollectives<Ops>::wait(Ticket ticket, bool performs) {
  await(ticket, performs);
  const std::lock_guard lock{mutex_};
  if (failure_ && !before(ticket, failed_)) std::rethrow_exception(failure_);
  if (!before(ticket, first_dropped_) && !before(last_dropped_, ticket))
    throw InvalidArgument("The program waits for a background collective that was dropped",
                          "a failure occurred, or the object that started it ended, before the collective began",
                          "Start it again");
}

template <ReportsFailures Ops>
void BackgroundCollectives<Ops>::await(Ticket ticket, bool performs) {
  if (progress_ == BackgroundProgress::while_waiting && performs)
    while (!is_done(ticket)) perform_first();
  for (Ticket seen = done_.load(std::memory_order_acquire); before(seen, ticket);)
    seen = detail::wait_for_change(done_, seen, detail::SpinBudget::shared_core());
}

template <ReportsFailures Ops>
auto BackgroundCollectives<Ops>::push(Task task) -> Started {
  Ticket ticket = 0;
  {
    const std::lock_guard lock{mutex_};
    if (alone_) CallSequence::refuse_alone("a background collective");
    task.runs = runs_;
    if (waiting_ == tasks_.size()) {
      std::rotate(tasks_.begin(), tasks_.begin() + static_cast<std::ptrdiff_t>(first_), tasks_.end());
      first_ = 0;
      tasks_.resize(2 * tasks_.size());
    }
    tasks_[(first_ + waiting_++) % tasks_.size()] = task;
    ticket = ++started_;
  }
  if (progress_ == BackgroundProgress::by_a_thread) call_thread();
  return {*this, ticket};
}

template <ReportsFailures Ops>
void BackgroundCollectives<Ops>::work() noexcept {
  for (std::uint32_t answered = 0;; ++answered) {
    calls_.wait(answered, std::memory_order_acquire);
    {
      const std::lock_guard lock{mutex_};
      if (waiting_ == 0) return;
    }
    perform_first();
  }
}

template <ReportsFailures Ops>
void BackgroundCollectives<Ops>::perform_first() noexcept {
  const Ticket ticket = done_.load(std::memory_order_relaxed) + 1;
  Task task;
  bool skips = false;
  {
    const std::lock_guard lock{mutex_};
    task = tasks_[first_];
    first_ = (first_ + 1) % tasks_.size();
    --waiting_;
    skips = drops_ || failure_ != nullptr;
    if (drops_) {
      if (last_dropped_ + 1 != ticket) first_dropped_ = ticket;
      last_dropped_ = ticket;
    }
  }
  if (!skips) {
    try {
      const TraceSpan span{task.label};
      begin_runs(task.runs);
      perform(task);
    } catch (...) {
      const std::lock_guard lock{mutex_};
      fail(std::current_exception(), ticket);
    }
  }
  done_.store(ticket, std::memory_order_release);
  done_.notify_all();
}

template <ReportsFailures Ops>
void BackgroundCollectives<Ops>::perform(const Task& task) {
  const std::size_t size = task.reduction->size;
  const std::size_t count = task.elements.size();
  if (task.copies == nullptr)  // the values of an empty range may be null
    return ops_.all_reduce_bytes(*task.reduction, {static_cast<std::byte*>(task.values), count * size});
  const detail::OperandsOfMembers<std::byte*> copies{
      task.count, task.count, [&](std::size_t copy) {
        std::byte* place = nullptr;
        std::memcpy(&place, static_cast<const std::byte*>(task.copies) + copy * sizeof(place), sizeof(place));
        return place + task.elements.begin * size;
      }};
  if (task.count == 1) return ops_.all_reduce_bytes(*task.reduction, {copies[0], count * size});
  reduce_copies(*task.reduction, copies, task.count, count);
}

template <ReportsFailures Ops>
void BackgroundCollectives<Ops>::reduce_copies(const Record& reduction,
                                               const detail::OperandsOfMembers<std::byte*>& copies, std::size_t members,
                                               std::size_t count) {
  const std::size_t wide_size = reduction.wide_size;
  const std::span<std::byte> mine{copies[0], count * reduction.size};
  std::span<std::byte> sums = mine;
  if (!reduction.widens()) {
    reduction.reduce(copies, {0, count}, mine.data(), 0);
  } else {
    if (scratch_.size() < count * wide_size) scratch_ = AlignedBuffer<std::byte>(count * wide_size);
    sums = {scratch_.data(), count * wide_size};
    for (std::size_t first = 0; first < count; first += detail::block_bytes / wide_size) {
      const std::size_t block = std::min(detail::block_bytes / wide_size, count - first);
      reduction.widen(sums.data() + first * wide_size, mine.data() + first * reduction.size, block);
      for (std::size_t copy = 1; copy < members; ++copy)
        reduction.combine(sums.data() + first * wide_size, copies[copy] + first * reduction.size, block);
    }
  }
  ops_.all_reduce_bytes(static_cast<const Record&>(*reduction.partial), sums);
  if (reduction.widens() || reduction.finishes)
    reduction.finish(mine.data(), sums.data(), nullptr, count,
                     reduction.finished_for(members * ops_.communicator().size()));
  for (std::size_t copy = 1; copy < members; ++copy) std::copy(mine.begin(), mine.end(), copies[copy]);
}

}  // namespace dist

#ifdef DIST_COMPILED
#include <dist/comm/self.hpp>
extern template class dist::BackgroundCollectives<dist::SelfCollectives>;
extern template void dist::detail::reduce_with_members(const dist::SelfCollectives&, const dist::Reduction&,
                                                       const dist::detail::OperandsOfMembers<const std::byte*>&,
                                                       std::size_t, std::byte*);
#endif
