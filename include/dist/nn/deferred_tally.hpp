#pragma once

#include <deque>
#include <memory>
#include <utility>

#include <dist/core/future.hpp>
#include <dist/core/light_memory.hpp>

namespace dist::nn {

/// What a batch adds to a metric, of numbers that a device computes. `tally()` is `of(work)`, and waits.
template <Future W, class Of>
struct DeferredTally {
  W work;
  Of of;

  [[nodiscard]] bool is_done() const { return work.is_done(); }
  [[nodiscard]] auto tally() const { return of(work); }
};
template <class W, class Of>
DeferredTally(W, Of) -> DeferredTally<W, Of>;

namespace detail {

/// Two works, which are done when both are.
template <Future First, Future Second>
struct AllOf {
  First first;
  Second second;

  void wait() const {
    first.wait();
    second.wait();
  }
  [[nodiscard]] bool is_done() const { return first.is_done() && second.is_done(); }
};
template <class First, class Second>
AllOf(First, Second) -> AllOf<First, Second>;

/// The deferred tallies of one replica, in the order of its batches.
template <class Tally>
class DeferredTallies {
 public:
  template <class Deferred>
  void add(Deferred deferred) {
    waiting_.push_back(std::make_unique<EntryOf<Deferred>>(std::move(deferred)));
  }
  void clear() noexcept {
    waiting_.clear();
    ready_ = {};
  }

  /// The sum of those that can be had without waiting, which are forgotten; with `waits` of all. One that throws is
  /// forgotten, too; those before it are in the sum of the next call.
  [[nodiscard]] Tally take(bool waits) {
    while (!waiting_.empty() && (waits || waiting_.front()->is_done())) {
      const std::unique_ptr<Entry> first = std::move(waiting_.front());
      waiting_.pop_front();
      const Tally one = first->tally();
      ready_.total += one.total;
      ready_.count += one.count;
    }
    return std::exchange(ready_, Tally{});
  }

 private:
  struct Entry {
    virtual ~Entry() = default;
    [[nodiscard]] virtual bool is_done() const = 0;
    [[nodiscard]] virtual Tally tally() const = 0;
  };
  template <class Deferred>
  struct EntryOf final : Entry {
    explicit EntryOf(Deferred&& deferred) : of(std::move(deferred)) {}
    [[nodiscard]] bool is_done() const override { return of.is_done(); }
    [[nodiscard]] Tally tally() const override { return of.tally(); }
    Deferred of;
  };

  std::deque<std::unique_ptr<Entry>> waiting_;
  Tally ready_{};
};

}  // namespace detail

}  // namespace dist::nn
