#pragma once

#include <exception>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>

namespace dist {

/// The destination of a value that a queue copies to the host. The queue shares ownership until the value arrives or is
/// lost.
struct HostCopyState {
  /// The progress of the copy.
  enum class State { under_way, there, lost };
  State state = State::under_way;  ///< changed by the queue
  std::exception_ptr why;          ///< the cause of a loss, if known
};
/// The destination of a value of type `T`.
template <class T>
struct HostCopyOf : HostCopyState {
  T value{};  ///< valid in state `there`
};

/// A value that a device computes: a Future, which only blocks callers that read it. Copies refer to the same value.
/// May outlive its queue. Not thread-safe, like the queue.
template <class T, class Queue>
class Pending {
 public:
  /// The value that arrives in `arrival` through `queue`.
  Pending(Queue queue, std::shared_ptr<const HostCopyOf<T>> arrival)
      : queue_(std::move(queue)), arrival_(std::move(arrival)) {}

  /// Waits for the value. Throws the exceptions of the queue's `wait` or of an earlier wait, and InvalidArgument if the
  /// work was never executed.
  void wait() const {
    if (arrival_->state == HostCopyState::State::under_way) queue_.wait();
    if (arrival_->state == HostCopyState::State::there) return;
    if (arrival_->why != nullptr) std::rethrow_exception(arrival_->why);
    throw InvalidArgument("A requested value of a device does not reach the host",
                          "its work was not done, because it did not become part of a graph",
                          "Handle the earlier error, and compute the value again");
  }
  [[nodiscard]] bool is_done() const { return arrival_->state != HostCopyState::State::under_way || queue_.is_done(); }

  /// Waits for the value and returns it.
  [[nodiscard]] T value() const {
    wait();
    return arrival_->value;
  }

 private:
  Queue queue_;
  std::shared_ptr<const HostCopyOf<T>> arrival_;
};

}  // namespace dist
