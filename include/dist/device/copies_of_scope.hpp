#pragma once

#include <concepts>
#include <cstdint>
#include <exception>

namespace dist {

/// Queues whose copies to spans of the host come there in a later wait: `copies()` is how many were put so far, and
/// `drop_copies(since)` lets those after that number not come any more. What is Pending comes all the same.
template <class Q>
concept DelaysCopies = requires(const Q queue, std::uint64_t since) {
  { queue.copies() }
  noexcept->std::same_as<std::uint64_t>;
  { queue.drop_copies(since) }
  noexcept;
};

/// The copies to spans of the host that are put on a queue while this object lives. Where an exception ends its scope, the
/// spans may be gone before the next wait, so the copies do not come there any more.
template <class Queue>
class CopiesOfScope {
 public:
  explicit CopiesOfScope(const Queue&) noexcept {}
  CopiesOfScope(const CopiesOfScope&) = delete;
  CopiesOfScope& operator=(const CopiesOfScope&) = delete;
};

template <DelaysCopies Queue>
class CopiesOfScope<Queue> {
 public:
  explicit CopiesOfScope(const Queue& queue) noexcept : queue_(queue), since_(queue.copies()) {}
  CopiesOfScope(const CopiesOfScope&) = delete;
  CopiesOfScope& operator=(const CopiesOfScope&) = delete;
  ~CopiesOfScope() {
    if (std::uncaught_exceptions() > exceptions_) queue_.drop_copies(since_);
  }

 private:
  Queue queue_;
  std::uint64_t since_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace dist
