#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <dist/core/pointers.hpp>
#include <dist/core/work.hpp>

namespace dist::nn {

/// What a batch adds to a metric, of numbers that a device computes. `tally()` is `of(work)`, and waits.
template <Work W, class Of>
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
template <Work First, Work Second>
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
  void clear() noexcept { waiting_.clear(); }

  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }

  /// The sum of those that can be had without waiting, which are forgotten; with `waits` of all. Where one throws, the sum
  /// ends before it, and the next call throws, which forgets that one.
  [[nodiscard]] Tally take(bool waits) {
    Tally sum{};
    std::size_t taken = 0;
    const Forget forget{waiting_, taken};
    while (taken < waiting_.size() && (waits || waiting_[taken]->is_done())) {
      Tally one{};
      try {
        one = waiting_[taken]->tally();
      } catch (...) {
        if (taken > 0) break;
        taken = 1;
        throw;
      }
      sum.total += one.total;
      sum.count += one.count;
      ++taken;
    }
    return sum;
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
  using Waiting = std::vector<std::unique_ptr<Entry>>;
  struct Forget {
    Waiting& waiting;
    const std::size_t& taken;
    ~Forget() { waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(taken)); }
  };

  Waiting waiting_;
};

}  // namespace detail

}  // namespace dist::nn
