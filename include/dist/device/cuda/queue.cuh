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
#include <dist/core/text.hpp>
#include <dist/core/trace.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/buffer.hpp>
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

/// A monitor of library work that may hang without an error of the runtime, such as collectives that wait for other
/// GPUs. Waits for the queue call `look(self)` repeatedly and once at the end, and forward its exceptions. On a timeout
/// they call `cancel(self)`, which aborts the work.
struct QueueWatch {
  void* self;                           ///< argument of both functions; null: no watch
  void (*look)(void* self);             ///< throws if the work has failed
  void (*cancel)(void* self) noexcept;  ///< aborts the work
};

/// The state of a replica's queue: a stream, and memory for reductions and copies.
class QueueState {
 public:
  /// `number` is the replica's number, for errors; `timeout` limits waits of the host.
  QueueState(int device, std::size_t number, std::chrono::nanoseconds timeout)
      : stream_(device),
        scratch_(device, most_partials * most_partial_bytes + most_partial_bytes),
        number_(number),
        timeout_(timeout) {}
  QueueState(const QueueState&) = delete;
  QueueState& operator=(const QueueState&) = delete;
  /// Waits for the work before freeing its memory. Leaks the memory if the work does not finish.
  ~QueueState() {
    staging_.drop(0);  // the destinations may be destroyed
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

  /// Waits until all work of the queue is done. Throws DeadlineExceeded.
  void wait() const {
    await([this] { return stream().is_done(); }, [this] { return name(); });
    set_late(false);  // all work is done, not only work before an event
    if (times_ != nullptr) [[unlikely]]
      harvest_times();
  }
  /// Waits until `is_over()`, which tests work of this queue. `describe()` returns its name for errors. Throws
  /// DeadlineExceeded, NotCapturable, and the exceptions of the watch.
  template <class IsOver, class Describe>
  void await(IsOver&& is_over, Describe&& describe) const {
    refuse_capture(describe);
    try {
      cuda::await(
          [&] {
            const bool over = is_over();
            if (watch_.self != nullptr) watch_.look(watch_.self);  // cancelled work also counts as over
            return over;
          },
          describe, timeout_);
    } catch (const DeadlineExceeded&) {
      set_late(true);
      if (watch_.self != nullptr) watch_.cancel(watch_.self);
      throw;
    }
  }
  /// Throws NotCapturable during a capture, when waiting is impossible.
  void refuse_capture() const {
    refuse_capture([this] { return name(); });
  }
  /// Sets the watch, or removes it if `self` is null. Call it while no thread waits.
  void set_watch(const QueueWatch& watch) noexcept { watch_ = watch; }
  /// Starts or ends the capture of new work into a graph. Call it while no thread submits work.
  void set_captured(bool captured) noexcept { is_captured_ = captured; }
  /// True between `set_captured(true)` and `set_captured(false)`.
  [[nodiscard]] bool is_captured() const noexcept { return is_captured_; }

  /// See TimesWork. Captured work is not timed.
  [[nodiscard, gnu::cold]] bool begin_timing(const ProfilerLabel& label) noexcept {
    if (is_captured_) return false;
    try {
      if (times_ == nullptr || !times_->records_to(label.trace))
        times_ = std::make_unique<WorkTimes>(*label.trace, stream(), name(), timeout_);
      times_->begin(label.name, label.number);
      return true;
    } catch (const std::exception&) {
      return false;  // the next checked call reports the error
    }
  }
  [[gnu::cold]] void end_timing() noexcept { times_->end(); }

  /// The stream on which the work runs.
  [[nodiscard]] StreamRef stream() const noexcept { return stream_.ref(); }
  /// The number of the replica in its process.
  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  /// The maximum time that the host waits; 0: no limit.
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
  /// The copies between the GPU and pageable host memory.
  [[nodiscard]] Staging& staging() noexcept { return staging_; }
  /// Device memory for the partial results of a reduction, followed by its result.
  [[nodiscard]] std::byte* partials() const noexcept { return scratch_.data(); }
  /// Device memory for the result of a reduction.
  [[nodiscard]] std::byte* result() const noexcept { return scratch_.data() + most_partials * most_partial_bytes; }

 private:
  template <class Describe>
  void refuse_capture(Describe&& describe) const {
    if (is_captured_)
      throw NotCapturable(cudaErrorStreamCaptureUnsupported, concat("The host waits for ", describe()),
                          "its work is captured as a graph, which has not been launched yet", do_it_outside);
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
  mutable bool is_late_ = false;  // its last wait timed out
};

/// The in-order work queue of a replica on a GPU, see the concept Queue. Launches compile in the caller, so programs
/// need nvcc. Bodies are named types with a `DIST_HD` call operator and only numbers and device pointers as members.
/// Not thread-safe; selects the GPU for the calling thread.
class Queue {
 public:
  using Space = DeviceMemory;
  template <class T>
  using Span = DeviceSpan<T, DeviceMemory>;

  /// A marker in the queue, complete until it is recorded.
  class Event : public cuda::Event {
   public:
    explicit Event(const Queue& queue) : cuda::Event(queue.stream().device()) {}
  };

  explicit Queue(QueueState& state) noexcept : state_(&state) {}

  /// The stream, for calls of libraries.
  [[nodiscard]] StreamRef stream() const noexcept { return state_->stream(); }

  /// The number of the replica in its process.
  [[nodiscard]] std::size_t number() const noexcept { return state_->number(); }
  /// The maximum time that the host waits for the queue.
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return state_->timeout(); }

  /// Sets the watch of library work, or removes it if `self` is null. Call it while no thread waits.
  void set_watch(const QueueWatch& watch) const noexcept { state_->set_watch(watch); }
  /// Polls `is_over()` until it returns true. Throws DeadlineExceeded with the text `describe()`, and the errors of the
  /// GPU and of the watch.
  template <class IsOver, class Describe>
  void await(IsOver&& is_over, Describe&& describe) const {
    state_->await(is_over, describe);
  }

  [[nodiscard]] bool begin_timing(const ProfilerLabel& label) const noexcept { return state_->begin_timing(label); }
  void end_timing() const noexcept { state_->end_timing(); }

  /// Starts or ends the capture of new work into a graph. Call it while no thread submits work.
  void set_captured(bool captured) const noexcept { state_->set_captured(captured); }
  /// See DelaysCopies.
  [[nodiscard]] std::uint64_t copies() const noexcept { return state_->staging().downloads(); }
  void drop_copies(std::uint64_t since) const noexcept { state_->staging().drop(since); }
  /// Cancels pending copies to the host with numbers from `since` on. Pending values report `why`.
  void give_up_copies(std::uint64_t since, const std::exception_ptr& why = nullptr) const noexcept {
    state_->staging().cancel(since, why);
  }

  /// Frees space in the staging buffers, so that the next copies from host memory neither allocate nor wait.
  void make_room() const {
    if (state_->staging().is_half_used()) wait();
  }

  void enter() const { select_device(stream().device()); }

  template <class Body>
  void for_each(IndexRange range, const Body& body) const {
    enter();
    cuda::for_each(stream(), range, body);
  }

  /// See the concept Queue. 16-bit floating-point values are combined as floats and rounded once.
  template <class Op, class Body>
  [[nodiscard]] auto transform_reduce(Op op, IndexRange range, const Body& body) const {
    using T = std::decay_t<decltype(body(range.begin))>;
    if constexpr (::dist::detail::require_queue_op<Op, T>()) {
      state_->refuse_capture();  // before starting a copy to the result
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

  /// Copies within GPU memory, also between GPUs: `from` may belong to another replica.
  ///
  /// For mapped host memory the host waits for the queue and copies, because the runtime's wait has no timeout.
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
  /// `from` may change after the call.
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
  /// `to` is written during or before the next `wait`.
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

  /// On an exception, cancels pending copies to the host, as their destinations may be destroyed before the next wait.
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
  /// Returns the result in memory of the queue, valid until the next reduction.
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
  /// See on_host. Does not query the runtime unless mapped memory exists.
  [[nodiscard]] static void* mapped_at(const void* address) {
    return has_mapped_memory.load(std::memory_order_relaxed) ? on_host(address) : nullptr;
  }
  void copy_on_host(const void* from, void* to, std::size_t bytes) const {
    wait();
    std::memcpy(to, from, bytes);
  }
  /// Calls `copy(first byte, bytes)` for parts that fit into the staging buffers.
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
