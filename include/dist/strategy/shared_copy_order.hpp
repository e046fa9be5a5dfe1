#pragma once

#include <cstddef>
#include <vector>

#include <dist/core/error.hpp>

namespace dist::detail {

/// Orders work of replica functions and work outside them where replicas on devices share copies: what is outside goes
/// through the queue of replica 0, and the queues of the others know nothing of it by themselves. All is called by one
/// thread while no other puts work on these queues. The host waits for nothing.
template <class Device>
class SharedCopyOrder {
 public:
  SharedCopyOrder(const typename Device::Queues& queues, std::size_t replicas) {
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      queues_.push_back(queues[replica]);
      events_.emplace_back(queues_.back());
    }
  }

  /// What replicas put on their queues from now on follows what queue 0 has.
  void lead() {
    if (queues_.size() < 2) return;
    queues_[0].record(events_[0]);
    for (std::size_t replica = 1; replica < queues_.size(); ++replica) queues_[replica].wait_for(events_[0]);
  }
  /// What is put on queue 0 from now on follows what all queues have.
  void follow() {
    for (std::size_t replica = 1; replica < queues_.size(); ++replica) {
      queues_[replica].record(events_[replica]);
      queues_[0].wait_for(events_[replica]);
    }
  }

 private:
  std::vector<typename Device::Queue> queues_;
  std::vector<typename Device::Queue::Event> events_;
};

/// Where every replica has a copy of its own, or the host's memory is ordered by its threads.
struct NoSharedCopyOrder {
  template <class Queues>
  constexpr NoSharedCopyOrder(const Queues&, std::size_t) noexcept {}
  static constexpr void lead() noexcept {}
  static constexpr void follow() noexcept {}
};

/// While one lives, replica functions run. The queues of a GPU that was lost meanwhile are not ordered any more.
template <class Order>
class ReplicasAtWork {
 public:
  explicit ReplicasAtWork(Order& order) : order_(order) { order_.lead(); }
  ReplicasAtWork(const ReplicasAtWork&) = delete;
  ReplicasAtWork& operator=(const ReplicasAtWork&) = delete;
  ~ReplicasAtWork() {
    try {
      order_.follow();
    } catch (const Error&) {
    }
  }

 private:
  Order& order_;
};
/// While one lives, replica functions wait for work outside them.
template <class Order>
class ReplicasAtRest {
 public:
  explicit ReplicasAtRest(Order& order) : order_(order) { order_.follow(); }
  ReplicasAtRest(const ReplicasAtRest&) = delete;
  ReplicasAtRest& operator=(const ReplicasAtRest&) = delete;
  ~ReplicasAtRest() {
    try {
      order_.lead();
    } catch (const Error&) {
    }
  }

 private:
  Order& order_;
};

}  // namespace dist::detail
