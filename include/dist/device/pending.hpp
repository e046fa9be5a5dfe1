#pragma once

#include <exception>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>

namespace dist {

/// The place of a value that a queue copies to the host. Whoever copies keeps it until the value is there, or does not come.
struct HostCopyState {
  enum class State { under_way, there, lost };
  State state = State::under_way;
  std::exception_ptr why;  ///< what made it lost, if something did
};
template <class T>
struct HostCopyOf : HostCopyState {
  T value{};
};

/// A value that a device computes, for which only those wait who ask for it: a Future, whose copies mean the same value. It may
/// outlive its queue. One thread at a time uses it, as the queue.
template <class T, class Queue>
class Pending {
 public:
  Pending(Queue queue, std::shared_ptr<const HostCopyOf<T>> arrival)
      : queue_(std::move(queue)), arrival_(std::move(arrival)) {}

  /// Returns when the value is there. Throws what a wait for the queue throws, what another one threw before, and
  /// InvalidArgument where the work was not done at all.
  void wait() const {
    if (arrival_->state == HostCopyState::State::under_way) queue_.wait();
    if (arrival_->state == HostCopyState::State::there) return;
    if (arrival_->why != nullptr) std::rethrow_exception(arrival_->why);
    throw InvalidArgument("A value of a device was asked for that does not come to the host",
                          "the work it is of was not done: it was to become a part of a graph, and did not",
                          "Handle the error that came then, and compute the value anew");
  }
  [[nodiscard]] bool is_done() const { return arrival_->state != HostCopyState::State::under_way || queue_.is_done(); }

  /// Waits.
  [[nodiscard]] T value() const {
    wait();
    return arrival_->value;
  }

 private:
  Queue queue_;
  std::shared_ptr<const HostCopyOf<T>> arrival_;
};

}  // namespace dist
