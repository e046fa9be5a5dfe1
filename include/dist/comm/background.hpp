#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/call_sequence.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/reduce_block.hpp>
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

/// When BackgroundCollectives are done.
enum class BackgroundProgress : unsigned char {
  by_a_thread,    ///< at once, by a thread of their own
  while_waiting,  ///< by the thread that waits for them: where no other thread may communicate
};

/// Collectives that are started, go on while the caller computes, and are waited for (Work). They are done one after the
/// other in the order in which they were started, which must be the same on all members. `Ops` are collectives of a group of
/// their own, which nobody else uses: of one member (SelfCollectives) only copies within this process are reduced.
///
/// A deadline that passes, a peer that fails, or a call that differs ends a collective with the exception of the group;
/// a thread that waits for it, or for a later one, gets that exception. The group is then broken: its members may have
/// left it at different calls, so it has to be made anew. A group of this process alone goes on after `cancel`.
template <ReportsFailures Ops>
class BackgroundCollectives {
  /// Names what was started: later ones have larger numbers, modulo 2^32.
  using Ticket = std::uint32_t;

 public:
  /// A collective that was started: a Future that must not outlive its BackgroundCollectives. Copies are the same work, for
  /// which several threads may wait. Without one, nothing was started.
  class Started {
   public:
    Started() = default;

    /// Returns when this and all that were started before are done; throws what ended one of them, InvalidArgument where
    /// `cancel` dropped it. With BackgroundProgress::while_waiting, where one thread only may communicate, `performs`
    /// says that this is the one.
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

  /// Throws OutOfMemory when the system gives no thread.
  explicit BackgroundCollectives(Ops ops, BackgroundProgress progress = BackgroundProgress::by_a_thread)
      : ops_(std::move(ops)), progress_(progress), tasks_(16) {
    if (progress == BackgroundProgress::by_a_thread)
      thread_ = detail::start_service_thread("collectives in the background", [this] { work(); });
  }
  BackgroundCollectives(const BackgroundCollectives&) = delete;
  BackgroundCollectives& operator=(const BackgroundCollectives&) = delete;
  ~BackgroundCollectives() {
    if (!thread_.joinable()) return;
    call_thread();
    thread_.join();
  }

  /// Whether collectives go on before they are waited for.
  [[nodiscard]] bool overlaps() const noexcept { return progress_ == BackgroundProgress::by_a_thread; }
  [[nodiscard]] const Ops& ops() const noexcept { return ops_; }

  /// Begins a run of the caller; `alone` if other processes do not make it. A collective of one run never meets one that
  /// another member starts in another run. No thread may start or wait for collectives during this call, nor during `end_run`.
  void begin_run(bool alone) noexcept {
    const std::lock_guard lock{mutex_};
    alone_ = alone;
    if (!alone) ++runs_;
  }
  void end_run() noexcept {
    const std::lock_guard lock{mutex_};
    alone_ = false;
  }

  /// Replaces `values` by their reduction over the group's members. They must stay, untouched, until waited for. A
  /// collective call.
  template <class T, ReduceOp<T> Op>
  Started start_all_reduce(Op, std::span<T> values, const ProfilerLabel& label = {}) {
    return push({.perform = &reduce_values<T, Op>,
                 .copies = values.data(),
                 .count = 1,
                 .elements = {0, values.size()},
                 .label = label});
  }
  /// The same of copies in this process, and of those of the other members: `elements` of each of `copies` become the
  /// reduction over all of them, the copies of this process first, in their order. Members have equally many. The
  /// pointers, too, must stay until waited for.
  template <class T, ReduceOp<T> Op>
  Started start_all_reduce(Op, std::span<T* const> copies, IndexRange elements, const ProfilerLabel& label = {}) {
    DIST_EXPECT(!copies.empty());
    return push({.perform = &reduce_copies<T, Op>,
                 .copies = const_cast<T**>(copies.data()),
                 .count = copies.size(),
                 .elements = elements,
                 .label = label});
  }

  /// Waits for collectives that have begun and drops the others: for a caller that leaves without waiting and whose
  /// memory ends. Call it while nobody starts or waits.
  void cancel() noexcept {
    const Ticket last = [&] {
      const std::lock_guard lock{mutex_};
      drops_ = true;
      return started_;
    }();
    await(last, true);
    const std::lock_guard lock{mutex_};
    drops_ = false;
  }

  /// Tells the other members, instead of taking part in the next collective, that this one has failed and why, after
  /// waiting for what has begun. Call it while nobody starts or waits. A group with other members is then broken. Does
  /// nothing in a run of this process alone.
  void cancel(const std::exception& error) noexcept {
    if (is_alone()) return;
    cancel();
    begin_runs(runs_);
    ops_.cancel(FailureNotice{error});
    const std::lock_guard lock{mutex_};
    ++failures_;
    if (ops_.communicator().size() == 1)
      failure_ = nullptr;
    else if (!failure_)
      fail(std::make_exception_ptr(
               InvalidArgument("Collectives in the background were used after a failure", error.what(),
                               "Make what uses them, such as nn::OverlappedAllReduce, anew on all workers")),
           started_);
  }
  /// How many are done so far, modulo 2^32.
  [[nodiscard]] std::uint32_t done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Calls of `cancel` so far: what was under way then was not finished.
  [[nodiscard]] std::size_t failures() const noexcept {
    const std::lock_guard lock{mutex_};
    return failures_;
  }
  /// Whether a failure has ended it.
  [[nodiscard]] bool is_broken() const noexcept {
    const std::lock_guard lock{mutex_};
    return failure_ != nullptr;
  }
  /// Throws what broke it, and WrongStrategy in a run of this process alone.
  void require_whole() const {
    const std::lock_guard lock{mutex_};
    if (failure_) std::rethrow_exception(failure_);
    if (alone_) CallSequence::refuse_alone("a collective in the background");
  }

 private:
  struct Task {
    void (*perform)(BackgroundCollectives&, const Task&) = nullptr;
    void* copies = nullptr;  // the values, or pointers to where they lie
    std::size_t count = 0;
    IndexRange elements{};
    ProfilerLabel label{};
    std::uint64_t runs = 0;  // that had begun when it was started
  };

  [[nodiscard]] bool is_alone() const noexcept {
    const std::lock_guard lock{mutex_};
    return alone_;
  }
  /// Lets the communicator count the first `runs` runs. Only the thread that performs tasks calls it while there are tasks.
  void begin_runs(std::uint64_t runs) {
    for (; runs_seen_ != runs; ++runs_seen_) ops_.communicator().begin_run(0);
  }

  [[nodiscard]] static bool before(Ticket one, Ticket other) noexcept {
    return static_cast<std::int32_t>(one - other) < 0;
  }

  [[nodiscard]] bool is_done(Ticket ticket) const noexcept {
    return !before(done_.load(std::memory_order_acquire), ticket);
  }
  void wait(Ticket ticket, bool performs) {
    await(ticket, performs);
    const std::lock_guard lock{mutex_};
    if (failure_ && !before(ticket, failed_)) std::rethrow_exception(failure_);
    if (!before(ticket, first_dropped_) && !before(last_dropped_, ticket))
      throw InvalidArgument("A collective in the background was waited for that was dropped",
                            "a failure, or the end of what had started it, came before it began", "Start it again");
  }
  void await(Ticket ticket, bool performs) {
    if (progress_ == BackgroundProgress::while_waiting && performs)
      while (!is_done(ticket)) perform_first();
    for (Ticket seen = done_.load(std::memory_order_acquire); before(seen, ticket);)
      seen = detail::wait_for_change(done_, seen, detail::SpinBudget::shared_core());
  }

  /// The queue keeps its memory, a ring that grows when it is full.
  Started push(Task task) {
    Ticket ticket = 0;
    {
      const std::lock_guard lock{mutex_};
      if (alone_) CallSequence::refuse_alone("a collective in the background");
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

  /// For a task, or for the end, which is a call without one.
  void call_thread() noexcept {
    calls_.fetch_add(1, std::memory_order_release);
    calls_.notify_one();
  }
  void work() noexcept {
    for (std::uint32_t answered = 0;; ++answered) {
      calls_.wait(answered, std::memory_order_acquire);
      {
        const std::lock_guard lock{mutex_};
        if (waiting_ == 0) return;
      }
      perform_first();
    }
  }
  /// Called by one thread, that of this object or the one that may communicate, when there is a task.
  void perform_first() noexcept {
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
        task.perform(*this, task);
      } catch (...) {
        const std::lock_guard lock{mutex_};
        fail(std::current_exception(), ticket);
      }
    }
    done_.store(ticket, std::memory_order_release);
    done_.notify_all();
  }
  void fail(std::exception_ptr why, Ticket ticket) noexcept {
    failure_ = std::move(why);
    failed_ = ticket;
  }

  template <class T, class Op>
  static void reduce_values(BackgroundCollectives& self, const Task& task) {
    self.ops_.all_reduce(Op{}, std::span<T>{static_cast<T*>(task.copies), task.elements.end});
  }

  /// Works in the accumulator's type, because rounding comes last; if that is another type, in memory kept for it.
  template <class T, class Op>
  static void reduce_copies(BackgroundCollectives& self, const Task& task) {
    using Wide = Accumulator<T>;
    T* const* const copies = static_cast<T* const*>(task.copies);
    const IndexRange range = task.elements;
    const std::span<T> mine{copies[0] + range.begin, range.size()};
    if (task.count == 1) return self.ops_.all_reduce(Op{}, mine);
    const std::size_t members = task.count * self.ops_.communicator().size();
    std::span<Wide> sums;
    if constexpr (std::same_as<Wide, T>) {
      sums = mine;
    } else {
      if (self.scratch_.size() < range.size() * sizeof(Wide))
        self.scratch_ = AlignedBuffer<std::byte>(range.size() * sizeof(Wide));
      sums = {reinterpret_cast<Wide*>(self.scratch_.data()), range.size()};
      std::copy(mine.begin(), mine.end(), sums.begin());
    }
    for (std::size_t first = 0; first < sums.size(); first += detail::block_elements<Wide>) {
      const auto block = sums.subspan(first, std::min(detail::block_elements<Wide>, sums.size() - first));
      for (std::size_t copy = 1; copy < task.count; ++copy)
        detail::combine(Op{}, block, copies[copy] + range.begin + first);
    }
    self.ops_.all_reduce(detail::Unfinished<Op>{}, sums);
    for (std::size_t i = 0; i < sums.size(); ++i) mine[i] = static_cast<T>(Op::finish(sums[i], members));
    for (std::size_t copy = 1; copy < task.count; ++copy)
      std::copy(mine.begin(), mine.end(), copies[copy] + range.begin);
  }

  Ops ops_;
  BackgroundProgress progress_;
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
  std::size_t first_ = 0;
  std::size_t waiting_ = 0;
  Ticket started_ = 0;
  std::exception_ptr failure_;
  Ticket failed_ = 0;  // the first that failed
  std::size_t failures_ = 0;
  bool drops_ = false;
  Ticket first_dropped_ = 1;  // the last ones in a row; none so far
  Ticket last_dropped_ = 0;
  std::uint64_t runs_ = 0;       // number of runs that have begun
  std::uint64_t runs_seen_ = 0;  // number of runs that the communicator has counted
  bool alone_ = false;           // in a run of this process alone
  AlignedBuffer<std::byte> scratch_;
  std::atomic<std::uint32_t> calls_{0};  // to the thread: one for each task, and one to end
  std::atomic<Ticket> done_{0};
  detail::JoinedThread thread_;  // last: it uses everything above
};

}  // namespace dist
