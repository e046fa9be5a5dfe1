#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>
#include <dist/core/trace.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/event.hpp>
#include <dist/device/cuda/last_work.hpp>
#include <dist/device/cuda/launch.cuh>
#include <dist/device/cuda/memory.hpp>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/staging.hpp>
#include <dist/device/cuda/stream.hpp>
#include <dist/device/cuda/wait.hpp>
#include <dist/device/cuda/work_times.hpp>
#include <dist/device/pending.hpp>

namespace dist::cuda {

namespace detail {
template <class T>
struct Fill {
  T* to;
  T value;
  DIST_HD void operator()(std::size_t i) const { to[i] = value; }
};
}  // namespace detail

/// Looks after work on a queue that the runtime alone does not know to be in trouble: a library's, which waits for other
/// GPUs. A wait for the queue calls `look(self)` again and again, and once more when it is over, and passes on what that
/// throws; `cancel(self)` when its time is up, which ends that work.
struct QueueWatch {
  void* self;
  void (*look)(void* self);
  void (*cancel)(void* self) noexcept;
};

/// What a replica's queue needs: a stream, and memory for reductions and copies.
class QueueState {
 public:
  /// `number` is what errors call it, the number of its replica; `timeout` how long the host waits for it.
  QueueState(int device, std::size_t number, std::chrono::nanoseconds timeout)
      : stream_(device),
        scratch_(device, most_partials * most_partial_bytes + most_partial_bytes),
        number_(number),
        timeout_(timeout) {}
  QueueState(const QueueState&) = delete;
  QueueState& operator=(const QueueState&) = delete;
  /// What was put there is done before its memory goes; the memory of work that does not end is left to it.
  ~QueueState() {
    staging_.drop(0);  // places may be gone
    try {
      wait();
      staging_.deliver();
    } catch (const DeadlineExceeded&) {
      staging_.cancel(0, std::current_exception());
      leave_behind(std::move(scratch_));
      leave_behind(std::move(staging_));
    } catch (const Error&) {
      staging_.cancel(0, std::current_exception());
    }
  }

  /// Returns when all that was put there is done. Throws DeadlineExceeded.
  void wait() const {
    await([this] { return stream().is_done(); }, [this] { return name(); });
    set_late(false);  // all of it has ended, and not an event before what is late
    if (times_ != nullptr) [[unlikely]]
      harvest_times();
  }
  /// Returns when `is_over()`, of work that was put there; `describe()` is what errors call it. Throws DeadlineExceeded,
  /// NotCapturable, and what the watch throws.
  template <class IsOver, class Describe>
  void await(IsOver&& is_over, Describe&& describe) const {
    refuse_capture(describe);
    try {
      cuda::await(
          [&] {
            const bool over = is_over();
            if (watch_.self != nullptr) watch_.look(watch_.self);  // what was ended by force is over, too
            return over;
          },
          describe, timeout_);
    } catch (const DeadlineExceeded&) {
      set_late(true);
      if (watch_.self != nullptr) watch_.cancel(watch_.self);
      throw;
    }
  }
  /// Throws NotCapturable where what is put there becomes a part of a graph, for which nobody can wait.
  void refuse_capture() const {
    refuse_capture([this] { return name(); });
  }
  /// From now on, while nobody waits. None: a null `self`.
  void set_watch(const QueueWatch& watch) noexcept { watch_ = watch; }
  /// Whether what is put there becomes a part of a graph. From now on, while nobody puts work there.
  void set_captured(bool captured) noexcept { is_captured_ = captured; }
  [[nodiscard]] bool is_captured() const noexcept { return is_captured_; }

  /// See TimesWork. Work that becomes a part of a graph has no times.
  [[nodiscard, gnu::cold]] bool begin_timing(const ProfilerLabel& label) noexcept {
    if (is_captured_) return false;
    try {
      if (times_ == nullptr || !times_->records_to(label.trace))
        times_ = std::make_unique<WorkTimes>(*label.trace, stream(), name(), timeout_);
      times_->begin(label.name, label.number);
      return true;
    } catch (const std::exception&) {
      return false;  // a call that matters says what is wrong with the GPU
    }
  }
  [[gnu::cold]] void end_timing() noexcept { times_->end(); }

  [[nodiscard]] StreamRef stream() const noexcept { return stream_.ref(); }
  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
  [[nodiscard]] Staging& staging() noexcept { return staging_; }
  /// Of the GPU: the partial results of a reduction, and room for one more.
  [[nodiscard]] std::byte* partials() const noexcept { return scratch_.data(); }
  [[nodiscard]] std::byte* result() const noexcept { return scratch_.data() + most_partials * most_partial_bytes; }

 private:
  template <class Describe>
  void refuse_capture(Describe&& describe) const {
    if (is_captured_)
      throw NotCapturable(cudaErrorStreamCaptureUnsupported, concat("The host waits for ", describe()),
                          "its work is captured as a graph, which is not launched yet", do_it_outside);
  }
  void set_late(bool late) const noexcept {
    if (std::exchange(is_late_, late) != late) note_late_queue(stream().device(), late);
  }
  [[nodiscard]] std::string name() const { return concat("queue ", number_, " of GPU ", stream().device()); }
  [[gnu::cold]] void harvest_times() const noexcept {
    // The trace may have ended before the strategy.
    if (times_->records_to(::dist::detail::active_trace.load(std::memory_order_relaxed))) times_->harvest();
  }

  Stream stream_;
  DeviceBuffer scratch_;
  Staging staging_;
  std::size_t number_;
  std::chrono::nanoseconds timeout_;
  QueueWatch watch_{};
  std::unique_ptr<WorkTimes> times_;
  bool is_captured_ = false;
  mutable bool is_late_ = false;  // its last wait met its deadline
};

/// The work of a replica on a GPU, in order: see the concept Queue. What it launches is compiled where it is called, so a
/// program of it is compiled by nvcc. Bodies are named types with a `DIST_HD` call, of numbers and device pointers. One
/// thread at a time puts work here, which selects the GPU for that thread.
class Queue {
 public:
  using Space = DeviceMemory;
  template <class T>
  using Span = DeviceSpan<T, DeviceMemory>;

  class Event : public cuda::Event {
   public:
    explicit Event(const Queue& queue) : cuda::Event(queue.stream().device()) {}
  };

  explicit Queue(QueueState& state) noexcept : state_(&state) {}

  /// For calls of libraries that take a stream.
  [[nodiscard]] StreamRef stream() const noexcept { return state_->stream(); }

  /// What errors call it.
  [[nodiscard]] std::size_t number() const noexcept { return state_->number(); }
  /// How long the host waits for it.
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return state_->timeout(); }

  /// See QueueState.
  void set_watch(const QueueWatch& watch) const noexcept { state_->set_watch(watch); }
  template <class IsOver, class Describe>
  void await(IsOver&& is_over, Describe&& describe) const {
    state_->await(is_over, describe);
  }

  /// See TimesWork.
  [[nodiscard]] bool begin_timing(const ProfilerLabel& label) const noexcept { return state_->begin_timing(label); }
  void end_timing() const noexcept { state_->end_timing(); }

  void set_captured(bool captured) const noexcept { state_->set_captured(captured); }
  /// See DelaysCopies.
  [[nodiscard]] std::uint64_t copies() const noexcept { return state_->staging().downloads(); }
  void drop_copies(std::uint64_t since) const noexcept { state_->staging().drop(since); }
  /// Copies to the host that are under way, after so many of all, do not come there any more, Pending ones because of `why`.
  void give_up_copies(std::uint64_t since, const std::exception_ptr& why = nullptr) const noexcept {
    state_->staging().cancel(since, why);
  }

  /// Lets copies of the host's memory have room, so that they need neither allocate nor wait for a while.
  void make_room() const {
    if (state_->staging().is_half_used()) wait();
  }

  void enter() const { select_device(stream().device()); }

  template <class Body>
  void for_each(IndexRange range, const Body& body) const {
    enter();
    cuda::for_each(stream(), range, body);
  }

  /// 16-bit floating-point values are combined as floats and rounded once.
  template <class Op, class Body>
  [[nodiscard]] auto transform_reduce(Op op, IndexRange range, const Body& body) const {
    using T = std::decay_t<decltype(body(range.begin))>;
    if constexpr (::dist::detail::require_queue_op<Op, T>()) {
      state_->refuse_capture();  // before a copy to the result is under way
      T result{};
      download<T>(reduced<T>(op, range, body), std::span<T>{&result, 1}, nullptr);
      wait();
      return result;
    } else {
      return ::dist::detail::refused<T>();
    }
  }
  template <class Op, class Body>
  [[nodiscard]] auto start_transform_reduce(Op op, IndexRange range, const Body& body) const {
    using T = std::decay_t<decltype(body(range.begin))>;
    const auto arrival = std::make_shared<HostCopyOf<T>>();
    if constexpr (::dist::detail::require_queue_op<Op, T>()) {
      const std::span<T> to{&arrival->value, 1};
      download<T>(reduced<T>(op, range, body), to, arrival);
    }
    return Pending<T, Queue>{*this, arrival};
  }
  template <class Op, class Body, class T>
  void transform_reduce_to(Op op, IndexRange range, const Body& body, Span<T> to) const {
    DIST_EXPECT(to.size() == 1);
    if constexpr (::dist::detail::require_queue_op<Op, T>()) {
      enter();
      cuda::transform_reduce(stream(), op, range, body, state_->partials(), to.data());
    }
  }

  /// Within GPUs, also from one to another: `from` may be memory of another replica.
  ///
  /// What lies in the host's memory, mapped for GPUs, is copied to and from the host, and within that memory, by the host,
  /// which waits for the queue before: the runtime would wait, too, but without a deadline.
  template <class T>
  void copy(std::type_identity_t<Span<const T>> from, Span<T> to) const {
    DIST_EXPECT(from.size() == to.size());
    if (from.empty() || from.data() == to.data()) return;
    if (const void* const of_host = mapped_at(from.data()); of_host != nullptr)
      if (void* const to_host = mapped_at(to.data()); to_host != nullptr)
        return copy_on_host(of_host, to_host, to.size_bytes());
    cuda::check(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyDefault, stream().get()),
                "cudaMemcpyAsync within GPUs", stream().device());
    note_work(stream().device(), copy_work);
  }
  /// `from` may change when this returns.
  template <class T>
  void copy(std::type_identity_t<std::span<const T>> from, Span<T> to) const {
    DIST_EXPECT(from.size() == to.size());
    if (to.empty()) return;
    if (void* const to_host = mapped_at(to.data()); to_host != nullptr)
      return copy_on_host(from.data(), to_host, to.size_bytes());
    const auto* const first = reinterpret_cast<const std::byte*>(from.data());
    in_parts(to.size_bytes(), [&](std::size_t at, std::size_t bytes) {
      state_->staging().upload(first + at, reinterpret_cast<std::byte*>(to.data()) + at, bytes, stream());
    });
  }
  /// `to` is written by `wait`, or before.
  template <class T>
  void copy(std::type_identity_t<Span<const T>> from, std::span<T> to) const {
    DIST_EXPECT(from.size() == to.size());
    if (to.empty()) return;
    if (const void* const of_host = mapped_at(from.data()); of_host != nullptr)
      return copy_on_host(of_host, to.data(), to.size_bytes());
    download<T>(from, to, nullptr);
  }

  template <class T>
  void fill(Span<T> to, std::type_identity_t<T> value) const {
    for_each({0, to.size()}, detail::Fill<T>{to.data(), value});
  }

  void record(Event& event) const { event.record(stream()); }
  void wait_for(const Event& event) const { event.precede(stream()); }

  /// Where it throws, copies to the host that are under way do not come there any more: their places may be gone when the
  /// next wait ends.
  void wait() const {
    try {
      state_->wait();
    } catch (...) {
      if (!state_->is_captured()) give_up_copies(0, std::current_exception());
      throw;
    }
    state_->staging().deliver();
  }
  [[nodiscard]] bool is_done() const { return !state_->is_captured() && stream().is_done(); }

 private:
  /// In memory of the queue, until the next reduction.
  template <class T, class Op, class Body>
  [[nodiscard]] Span<T> reduced(Op op, IndexRange range, const Body& body) const {
    const Span<T> one{reinterpret_cast<T*>(state_->result()), 1};
    transform_reduce_to(op, range, body, one);
    return one;
  }
  template <class T>
  void download(Span<const T> from, std::span<T> to, const std::shared_ptr<HostCopyState>& arrival) const {
    const auto* const first = reinterpret_cast<const std::byte*>(from.data());
    in_parts(to.size_bytes(), [&](std::size_t at, std::size_t bytes) {
      state_->staging().download(first + at, reinterpret_cast<std::byte*>(to.data()) + at, bytes, stream(), arrival);
    });
  }
  /// See on_host. The runtime is asked only where there may be such memory.
  [[nodiscard]] static void* mapped_at(const void* address) {
    return has_mapped_memory.load(std::memory_order_relaxed) ? on_host(address) : nullptr;
  }
  void copy_on_host(const void* from, void* to, std::size_t bytes) const {
    wait();
    std::memcpy(to, from, bytes);
  }
  /// `copy(first byte, bytes)` for parts that the staging has room for.
  template <class Copy>
  void in_parts(std::size_t bytes, Copy&& copy) const {
    for (std::size_t at = 0; at < bytes;) {
      const std::size_t part = std::min(bytes - at, Staging::most);
      if (!state_->staging().has_room_for(part)) wait();
      copy(at, part);
      at += part;
    }
  }

  QueueState* state_;
};

}  // namespace dist::cuda
