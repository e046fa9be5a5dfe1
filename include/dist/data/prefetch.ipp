#pragma once

#include <atomic>
#include <exception>
#include <utility>
#include <vector>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/core/trace.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/device/wait.hpp>

namespace dist::data::detail {

DIST_INLINE void require_ring_size(std::size_t elements, std::size_t least) {
  constexpr std::size_t most = std::size_t{1} << 31;  // limit of the ring's counters
  if (elements < least || elements > most)
    throw InvalidArgument("prefetch cannot run ahead by this number of elements",
                          concat(elements, " given, ", least, " to ", most, " are allowed"),
                          "Use 1 or 2; more elements help only if the time per element varies");
}

/// A thread that runs a pass ahead of its consumer, with a ring of elements in between. The consumer swaps elements
/// with the ring, so the steady state neither allocates nor copies.
class Prefetcher final : public AnyPass {
 public:
  Prefetcher(std::unique_ptr<AnyPass> upstream, const ElementOps& ops, std::size_t ring_size)
      : upstream_(std::move(upstream)), ops_(&ops) {
    ring_.reserve(ring_size);
    for (std::size_t slot = 0; slot < ring_size; ++slot) ring_.push_back({AnyElement{ops}});
    try {
      producer_ = std::thread{[this] {
        dist::detail::name_this_thread("dist input");
        produce();
      }};
    } catch (const std::exception& refusal) {
      throw OutOfMemory("prefetch cannot start its thread", refusal.what(), "Raise the limit on threads (ulimit -u)");
    }
  }
  ~Prefetcher() override {
    stopping_.store(true, std::memory_order_relaxed);
    advance(taken_);
    producer_.join();
  }

  [[gnu::noinline]] bool next(void* element) override {
    const std::uint32_t taken = taken_.load(std::memory_order_relaxed);
    if (made_.load(std::memory_order_acquire) == taken) {
      const TraceSpan span{dist::detail::traced("wait for batch")};
      await_change(made_, taken);
    }
    Slot& slot = ring_[tail_];
    // Keep the last slot, so that further calls give the same result.
    if (slot.state == State::error) std::rethrow_exception(error_);
    if (slot.state == State::end) return false;
    ops_->exchange(slot.element.get(), element);
    tail_ = after(tail_);
    advance(taken_);
    return true;
  }

 private:
  enum class State : unsigned char { element, end, error };
  struct Slot {
    AnyElement element;
    State state = State::element;
  };

  static void await_change(const std::atomic<std::uint32_t>& counter, std::uint32_t old) {
    dist::detail::wait_for_change(counter, old, dist::detail::SpinBudget::shared_core());
  }
  static void advance(std::atomic<std::uint32_t>& counter) {
    counter.fetch_add(1, std::memory_order_release);
    counter.notify_one();
  }
  [[nodiscard]] std::size_t after(std::size_t slot) const { return slot + 1 == ring_.size() ? 0 : slot + 1; }

  void produce() noexcept {
    for (std::size_t head = 0;; head = after(head)) {
      if (!await_room()) return;
      Slot& slot = ring_[head];
      slot.state = fill(slot.element);
      advance(made_);
      if (slot.state != State::element) return;
    }
  }
  /// Waits for a free slot. Returns false if the consumer no longer exists.
  bool await_room() {
    for (;;) {
      const std::uint32_t taken = taken_.load(std::memory_order_acquire);
      if (stopping_.load(std::memory_order_relaxed)) return false;
      if (made_.load(std::memory_order_relaxed) - taken < ring_.size()) return true;
      await_change(taken_, taken);
    }
  }
  State fill(AnyElement& element) {
    try {
      const TraceSpan span{dist::detail::traced("make batch")};
      return upstream_->next(element.get()) ? State::element : State::end;
    } catch (...) {
      error_ = std::current_exception();
      return State::error;
    }
  }

  std::unique_ptr<AnyPass> upstream_;
  const ElementOps* ops_;
  std::vector<Slot> ring_;
  std::exception_ptr error_;
  std::size_t tail_ = 0;
  alignas(cache_line) std::atomic<std::uint32_t> made_{0};
  alignas(cache_line) std::atomic<std::uint32_t> taken_{0};
  std::atomic<bool> stopping_{false};
  dist::detail::JoinedThread producer_;
};

DIST_INLINE std::unique_ptr<AnyPass> made_ahead(std::unique_ptr<AnyPass> pass, const ElementOps& ops,
                                                std::size_t ring_size) {
  if (ring_size == 0) return pass;
  return std::make_unique<Prefetcher>(std::move(pass), ops, ring_size);
}

}  // namespace dist::data::detail
