// Shared memory of several members, whose atomic operations occur one at a time in an order that a test chooses: for
// protocols that are tested without threads, in all orders.
//
// A member is a Fiber, which pauses before each of its operations. Operations become visible to other members by the
// language's memory model: access to a non-atomic value is an error unless a release store and an acquire load order it
// after the accesses of others. Stores that are not sequentially consistent wait in a buffer, in order, until a
// separate step makes them visible.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <support/fiber.hpp>

namespace support {

class SteppedMembers {
 public:
  static constexpr std::size_t most = 3;
  /// The known past of each member.
  using Clock = std::array<unsigned, most>;

  explicit SteppedMembers(std::size_t count) : members_(count) {}

  /// Members call it before a new step.
  void pause() { members_[running_].fiber->pause(); }
  /// Pauses a member until something has changed since it last looked.
  void pause_until_a_change() {
    members_[running_].waits = true;
    pause();
  }
  /// Returns one of `count` alternatives, each of which is explored.
  [[nodiscard]] std::size_t choose(std::size_t count) {
    members_[running_].choices = count;
    pause();
    members_[running_].choices = 1;
    note(chosen_);
    return chosen_;
  }
  void mistake(std::string what) {
    if (mistake_.empty()) mistake_ = std::move(what);
  }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }

  /// Adds to the running member's past, which determines its future.
  void note(std::uint64_t happened) { mix(members_[running_].history, happened); }
  /// Records that the running member has seen this value in memory.
  void see(std::uint64_t seen) {
    members_[running_].looked = changes_;
    note(seen);
  }
  void changed() { ++changes_; }

  /// The knowledge of the running member. Its work after `release` is unknown to members that `acquire` the result.
  [[nodiscard]] const Clock& clock() const { return members_[running_].clock; }
  [[nodiscard]] Clock release() {
    const Clock known = members_[running_].clock;
    ++members_[running_].clock[running_];
    return known;
  }
  void acquire(const Clock& known) {
    Clock& mine = members_[running_].clock;
    for (std::size_t rank = 0; rank < most; ++rank)
      if (known[rank] > mine[rank]) mine[rank] = known[rank];
  }

  /// Buffers a store, invisible to others.
  void buffer(std::function<void()> store) { members_[running_].stores.push_back(std::move(store)); }
  void flush() {
    for (auto& stores = members_[running_].stores; !stores.empty(); stores.pop_front()) stores.front()();
  }

  /// A member's function, with shared state that is new for each order.
  struct Run {
    std::function<void(std::size_t rank)> body;
    std::function<std::string()> find_mistake;  // at the end
  };
  struct Explored {
    std::size_t states = 0;
    std::string mistake;  // the first; empty if none
  };
  /// Runs `count` members in all orders, until there is an error or `most_states` states were seen.
  [[nodiscard]] static Explored explore(std::size_t count, const std::function<Run(SteppedMembers&)>& make) {
    struct Chosen {
      std::size_t step;
      std::size_t steps;
    };
    std::vector<Chosen> path;
    std::unordered_set<std::uint64_t> known;
    for (;;) {
      SteppedMembers members{count};
      const Run run = make(members);
      members.start(run);
      for (std::size_t at = 0;; ++at) {
        if (at == path.size()) {
          const std::size_t steps = members.count_steps();
          if (!members.mistake_.empty()) return {known.size(), members.mistake_};
          if (steps == 0) {
            const std::string mistake = members.have_ended() ? run.find_mistake() : "all wait for each other";
            if (!mistake.empty()) return {known.size(), mistake};
            break;
          }
          if (!known.insert(members.key()).second) break;
          path.push_back({0, steps});
        }
        members.take(path[at].step);
      }
      while (!path.empty() && path.back().step + 1 == path.back().steps) path.pop_back();
      if (path.empty()) return {known.size(), {}};
      ++path.back().step;
    }
  }

 private:
  struct Member {
    std::unique_ptr<Fiber> fiber;
    std::uint64_t history = 0;
    std::size_t choices = 1;
    bool waits = false;
    std::uint64_t looked = 0;
    Clock clock{};
    std::deque<std::function<void()>> stores;
  };

  static void mix(std::uint64_t& hash, std::uint64_t more) noexcept {
    hash = (hash ^ more) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }

  void start(const Run& run) {
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      members_[rank].clock[rank] = 1;
      members_[rank].fiber = std::make_unique<Fiber>([&run, rank] { run.body(rank); });
      resume(rank);  // to its first operation
    }
  }
  void resume(std::size_t rank) {
    running_ = rank;
    members_[rank].waits = false;
    members_[rank].fiber->resume();
  }
  [[nodiscard]] std::size_t ways_on(const Member& member) const {
    if (member.fiber->has_ended() || (member.waits && member.looked == changes_)) return 0;
    return member.choices;
  }
  /// The steps of a member: its alternatives, then its first buffered store.
  [[nodiscard]] std::size_t count_steps() const {
    std::size_t steps = 0;
    for (const Member& member : members_) steps += ways_on(member) + (member.stores.empty() ? 0 : 1);
    return steps;
  }
  void take(std::size_t step) {
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      Member& member = members_[rank];
      const std::size_t ways = ways_on(member);
      if (step < ways) {
        chosen_ = step;
        return resume(rank);
      }
      step -= ways;
      if (member.stores.empty()) continue;
      if (step == 0) {
        running_ = rank;
        member.stores.front()();
        member.stores.pop_front();
        return;
      }
      --step;
    }
  }
  [[nodiscard]] bool have_ended() const {
    for (const Member& member : members_)
      if (!member.fiber->has_ended()) return false;
    return true;
  }
  /// The content of memory follows from each member's past and the visibility of its stores.
  [[nodiscard]] std::uint64_t key() const {
    std::uint64_t hash = 0;
    for (const Member& member : members_) {
      mix(hash, member.history);
      mix(hash, 2 * member.stores.size() + (member.fiber->has_ended() ? 1 : 0));
      mix(hash, ways_on(member));
    }
    return hash;
  }

  std::vector<Member> members_;
  std::size_t running_ = 0;
  std::size_t chosen_ = 0;
  std::uint64_t changes_ = 0;
  std::string mistake_;
};

template <class T>
class SteppedValue {
 public:
  explicit SteppedValue(SteppedMembers& members) : members_(&members) {}

  SteppedValue& operator=(T value) {
    const SteppedMembers::Clock& now = members_->clock();
    for (std::size_t rank = 0; rank < SteppedMembers::most; ++rank)
      if (read_[rank] > now[rank] || written_[rank] > now[rank]) members_->mistake("a value is written while in use");
    written_[members_->running()] = now[members_->running()];
    value_ = value;
    return *this;
  }
  operator T() const {
    const SteppedMembers::Clock& now = members_->clock();
    for (std::size_t rank = 0; rank < SteppedMembers::most; ++rank)
      if (written_[rank] > now[rank]) members_->mistake("a value is read before it is there");
    read_[members_->running()] = now[members_->running()];
    members_->note(static_cast<std::uint64_t>(value_));
    return value_;
  }

 private:
  SteppedMembers* members_;
  T value_{};
  mutable SteppedMembers::Clock read_{};
  SteppedMembers::Clock written_{};
};

/// An atomic number, whose operations are steps, and which only one member stores.
class SteppedAtomic {
 public:
  /// `order` is the memory order of all stores, to test that weaker orders are detected.
  SteppedAtomic(SteppedMembers& members, std::memory_order order) : members_(&members), order_(order) {}

  void store(std::uint32_t value) {
    members_->pause();
    members_->note(value);
    last_ = {value, last_.version + 1, {}};
    if (order_ != std::memory_order_relaxed) last_.known = members_->release();
    owner_ = members_->running();
    const auto show = [this, shown = last_] {
      shown_ = shown;
      members_->changed();
    };
    if (order_ != std::memory_order_seq_cst) return members_->buffer(show);
    members_->flush();
    show();
  }
  [[nodiscard]] std::uint32_t load() const {
    members_->pause();
    const Stored& seen = owner_ == members_->running() ? last_ : shown_;
    members_->acquire(seen.known);
    members_->see(seen.version);
    return seen.value;
  }

 private:
  struct Stored {
    std::uint32_t value = 0;
    std::uint64_t version = 0;
    SteppedMembers::Clock known{};
  };

  SteppedMembers* members_;
  std::memory_order order_;
  std::size_t owner_ = SteppedMembers::most;
  Stored last_;   // by its owner
  Stored shown_;  // to the others
};

class SteppedLock {
 public:
  explicit SteppedLock(SteppedMembers& members) : members_(&members) {}

  void lock() {
    members_->pause();
    for (; taken_; members_->pause_until_a_change()) members_->see(0);
    taken_ = true;
    members_->acquire(known_);
    members_->note(++times_);
  }
  void unlock() {
    members_->pause();
    members_->flush();
    known_ = members_->release();
    taken_ = false;
    members_->changed();
  }

 private:
  SteppedMembers* members_;
  bool taken_ = false;
  std::uint64_t times_ = 0;
  SteppedMembers::Clock known_{};
};

}  // namespace support
