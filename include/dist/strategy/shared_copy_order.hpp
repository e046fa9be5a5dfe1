#pragma once

#include <cstddef>
#include <vector>

#include <dist/core/error.hpp>

namespace dist::detail {

/// Orders work inside and outside replica functions if replicas on devices share copies: outside work uses replica 0's
/// queue, which other queues do not follow by themselves. Not thread-safe. The host does not wait.
template <class Device>
class SharedCopyOrder {
 public:
  SharedCopyOrder(const typename Device::Queues& queues, std::size_t replicas) {
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      queues_.push_back(queues[replica]);
      events_.emplace_back(queues_.back());
    }
  }

  /// Makes later work in all queues follow the current work in queue 0.
  void lead() {
    if (queues_.size() < 2) return;
    queues_[0].record(events_[0]);
    for (std::size_t replica = 1; replica < queues_.size(); ++replica) queues_[replica].wait_for(events_[0]);
  }
  /// Makes later work in queue 0 follow the current work in all queues.
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

/// For replicas with separate copies, or host memory, which needs no order.
struct NoSharedCopyOrder {
  template <class Queues>
  constexpr NoSharedCopyOrder(const Queues&, std::size_t) noexcept {}
  static constexpr void lead() noexcept {}
  static constexpr void follow() noexcept {}
};

/// Orders queues while replica functions run. Skips the queues of a lost GPU.
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
/// Orders queues while replica functions wait for work outside them.
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
