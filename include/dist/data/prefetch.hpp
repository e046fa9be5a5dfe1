#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/core/trace.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/wait.hpp>

namespace dist::data {

namespace detail {

/// A thread that runs one pass ahead of its consumer, and the ring of elements between the two. The consumer
/// swaps its element with the ring's, so that a steady state allocates nothing and copies nothing.
template <Dataset D>
class Prefetcher {
 public:
  Prefetcher(IteratorOf<D> upstream, std::size_t ring_size) : upstream_(std::move(upstream)), ring_(ring_size) {
    try {
      producer_ = std::thread{[this] {
        dist::detail::name_this_thread("dist input");
        produce();
      }};
    } catch (const std::exception& refusal) {
      throw OutOfMemory("No thread for prefetch", refusal.what(), "Raise the limit on threads (ulimit -u)");
    }
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  ~Prefetcher() {
    stopping_.store(true, std::memory_order_relaxed);
    advance(taken_);
    producer_.join();
  }

  bool next(ElementOf<D>& element) {
    const std::uint32_t taken = taken_.load(std::memory_order_relaxed);
    if (made_.load(std::memory_order_acquire) == taken) {
      const TraceSpan span{dist::detail::traced("wait for batch")};
      await_change(made_, taken);
    }
    Slot& slot = ring_[tail_];
    // The last slot stays, so that asking again gives the same answer.
    if (slot.state != State::element) {
      if (slot.state == State::error) std::rethrow_exception(error_);
      return false;
    }
    std::swap(element, slot.element);
    tail_ = after(tail_);
    advance(taken_);
    return true;
  }

 private:
  enum class State : unsigned char { element, end, error };
  struct Slot {
    ElementOf<D> element{};
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

  /// False when the consumer no longer exists.
  bool await_room() {
    for (;;) {
      const std::uint32_t taken = taken_.load(std::memory_order_acquire);
      if (stopping_.load(std::memory_order_relaxed)) return false;
      if (made_.load(std::memory_order_relaxed) - taken < ring_.size()) return true;
      await_change(taken_, taken);
    }
  }

  State fill(ElementOf<D>& element) {
    try {
      const TraceSpan span{dist::detail::traced("make batch")};
      return upstream_.next(element) ? State::element : State::end;
    } catch (...) {
      error_ = std::current_exception();
      return State::error;
    }
  }

  IteratorOf<D> upstream_;
  std::vector<Slot> ring_;
  std::exception_ptr error_;
  std::size_t tail_ = 0;
  alignas(cache_line) std::atomic<std::uint32_t> made_{0};
  alignas(cache_line) std::atomic<std::uint32_t> taken_{0};
  std::atomic<bool> stopping_{false};
  dist::detail::JoinedThread producer_;
};

inline void require_ring_size(std::size_t elements, std::size_t least) {
  constexpr std::size_t most = std::size_t{1} << 31;  // what the ring's counters can tell apart
  if (elements < least || elements > most)
    throw InvalidArgument("prefetch cannot run ahead by that many elements",
                          concat(elements, " given, ", least, " to ", most, " can be"),
                          "Use 1 or 2; more help only when the time per element varies");
}

}  // namespace detail

/// The elements of `D`, made by a background thread ahead of their use. Made by `prefetch`.
template <Dataset D>
class PrefetchDataset : public StepDataset<PrefetchDataset<D>, D> {
  static_assert(
      !data::lends_elements<D>,
      "prefetch keeps elements beyond the next one, these are lent for one step: put it before the dataset is "
      "distributed");

 public:
  using Element = ElementOf<D>;

  /// With a ring of 0 elements every element is made when it is asked for, in the thread that asks. Throws
  /// InvalidArgument for a ring that is too large.
  PrefetchDataset(D dataset, std::size_t ring_size)
      : StepDataset<PrefetchDataset, D>(std::move(dataset)), ring_size_(ring_size) {
    detail::require_ring_size(ring_size, 0);
  }

  class Iterator {
   public:
    Iterator(const PrefetchDataset& dataset, std::uint64_t epoch) : dataset_(&dataset), epoch_(epoch) {
      begin(dataset.dataset_.iterate(epoch));
    }

    bool next(Element& element) {
      const bool has_element = prefetcher_ ? prefetcher_->next(element) : upstream_->next(element);
      if (has_element) ++given_;
      return has_element;
    }
    /// See Resumable. What was made ahead is made again.
    [[nodiscard]] std::uint64_t position() const noexcept { return given_; }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      IteratorOf<D> upstream = dataset_->dataset_.iterate(epoch_);
      upstream.seek(position);
      begin(std::move(upstream));
      given_ = position;
    }

   private:
    void begin(IteratorOf<D> upstream) {
      if (dataset_->ring_size_ > 0)
        prefetcher_ = std::make_unique<detail::Prefetcher<D>>(std::move(upstream), dataset_->ring_size_);
      else
        upstream_.emplace(std::move(upstream));
    }

    const PrefetchDataset* dataset_;
    std::uint64_t epoch_;
    std::uint64_t given_ = 0;
    std::unique_ptr<detail::Prefetcher<D>> prefetcher_;
    std::optional<IteratorOf<D>> upstream_;
  };

  /// The same step over `make(upstream)`.
  template <class Make>
  [[nodiscard]] auto over(Make make) && {
    return data::PrefetchDataset<decltype(make(std::move(this->dataset_)))>{make(std::move(this->dataset_)),
                                                                            ring_size_};
  }

 private:
  std::size_t ring_size_;
};

template <class D>
auto made_ahead(D dataset, std::size_t elements) {
  return PrefetchDataset<D>{std::move(dataset), elements};
}

/// Makes up to `elements` elements ahead of their use, on a thread that lives as long as the pass. What the
/// dataset throws arrives where the element would have been. Throws InvalidArgument for no elements.
[[nodiscard]] inline auto prefetch(std::size_t elements) {
  detail::require_ring_size(elements, 1);
  return Pipe{[=]<Dataset D>(D dataset) { return PrefetchDataset<D>{std::move(dataset), elements}; }};
}

}  // namespace dist::data
