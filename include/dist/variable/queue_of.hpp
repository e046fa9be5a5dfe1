/// Queues for variable operations on copies that the host may not access.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/device/queue_scopes.hpp>

namespace dist::detail {

/// Returns the queue for work on memory of `Device` in a replica function or a function of `strategy.update`: the
/// context's queue, or a host queue for host memory.
template <class Device, class Context>
[[nodiscard]] auto queue_of([[maybe_unused]] const Context& context) {
  if constexpr (std::same_as<Device, typename Context::Strategy::Device>)
    return context.queue();
  else
    return typename Device::Queue{};
}
/// Returns the queue of a replica of this process, outside replica functions.
template <class Device, InCrossReplica Context>
[[nodiscard]] auto queue_of_replica([[maybe_unused]] const Context& context, [[maybe_unused]] std::size_t local) {
  if constexpr (std::same_as<Device, typename Context::Strategy::Device>)
    return context.queue(local);
  else
    return typename Device::Queue{};
}
/// Returns the queue of the first replica that reads copy number `copy`.
template <class Device, InCrossReplica Context>
[[nodiscard]] auto queue_of(const Context& context, std::size_t copy) {
  std::size_t reader = 0;
  while (StoreOf<Context>::copy_of(reader) != copy) ++reader;
  return queue_of_replica<Device>(context, reader);
}

/// Copies between spans of equal size, one of which may be in host memory, and waits.
template <class Q, class From, class To>
void copy_and_wait(const Q& queue, From from, To to) {
  const CopiesOfScope<Q> copies{queue};
  queue.copy(from, to);
  queue.wait();
}

/// A replica's copy as readable by the host: the copy itself, or a snapshot.
template <class Variable, InReplica Context>
class HostCopy {
  using T = typename Variable::Element;
  static constexpr bool is_here = Variable::View::is_host_accessible;

 public:
  HostCopy(const Variable& variable, const Context& replica)
      : queue_(variable.queue(replica)), copy_(variable.component(replica)), staged_(is_here ? 0 : variable.size()) {
    if constexpr (!is_here) copy_and_wait(queue_, copy_, elements());
  }
  [[nodiscard]] std::span<T> elements() {
    if constexpr (is_here)
      return copy_;
    else
      return {staged_.data(), staged_.size()};
  }

 private:
  using Queue = decltype(std::declval<const Variable&>().queue(std::declval<const Context&>()));

  [[no_unique_address]] Queue queue_;
  typename Variable::Span copy_;
  AlignedBuffer<T> staged_;
};

/// All copies of a variable in this process as readable by the host: the copies themselves, or snapshots.
template <class Variable, InCrossReplica Context>
class HostCopies {
  using T = typename Variable::Element;
  static constexpr bool are_here = Variable::View::is_host_accessible;

 public:
  HostCopies(const Variable& variable, const Context& context) : variable_(variable), context_(context) {
    if constexpr (!are_here) {
      // Waits for each copy before the next, so that an exception leaves no pending copies to freed memory.
      for (std::size_t copy = 0; copy < variable.copies(); ++copy) {
        copies_.emplace_back(variable.size());
        copy_and_wait(variable.queue(context, copy), variable.copy(context, copy), elements(copies_[copy]));
      }
    }
  }
  [[nodiscard]] std::span<const T> operator[](std::size_t copy) const {
    if constexpr (are_here)
      return variable_.copy(context_, copy);
    else
      return elements(copies_[copy]);
  }

 private:
  struct Nothing {};
  [[nodiscard]] static std::span<T> elements(AlignedBuffer<T>& copy) { return {copy.data(), copy.size()}; }
  [[nodiscard]] static std::span<const T> elements(const AlignedBuffer<T>& copy) { return {copy.data(), copy.size()}; }

  const Variable& variable_;
  const Context& context_;
  [[no_unique_address]] std::conditional_t<are_here, Nothing, std::vector<AlignedBuffer<T>>> copies_;
};

}  // namespace dist::detail
