#pragma once

#include <cstddef>

#include <dist/comm/element_update.hpp>
#include <dist/comm/self.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/device/device.hpp>

namespace dist {

/// The collectives of a group of one on a device other than the host. All are identities, except updates of device
/// memory, which are enqueued in the replica's queue.
template <Queue Q>
class SelfOnQueue : public SelfCollectives {
  template <class T>
  using Span = SpanIn<T, typename Q::Space>;

 public:
  /// Updates of device memory are enqueued in `queue`.
  explicit SelfOnQueue(Q queue) : queue_(queue) {}

  [[nodiscard]] const Q& queue() const noexcept { return queue_; }

  using SelfCollectives::all_reduce;
  using SelfCollectives::broadcast;
  using SelfCollectives::reduce_and_apply;
  using SelfCollectives::reduce_scatter;
  using SelfCollectives::update_shards;

  [[nodiscard]] SelfOnQueue with_timeout(std::chrono::nanoseconds) const noexcept { return *this; }

  template <class T, ReduceOp<T> Op, MemorySpace Where>
  static void all_reduce(Op, DeviceSpan<T, Where>) noexcept {}
  template <class T, MemorySpace Where>
  static void broadcast(std::size_t, DeviceSpan<T, Where>) noexcept {}

  template <class T, ReduceOp<T> Op, ElementUpdate<T> Update, MemorySpace Where>
  void reduce_and_apply(Op, DeviceSpan<const T, Where> gradient, DeviceSpan<T, Where> mirror,
                        const Update& update) const {
    detail::update_on(queue_, update, mirror, gradient);
  }
  template <class T, ReduceOp<T> Op, MemorySpace Where>
  IndexRange reduce_scatter(Op, DeviceSpan<T, Where> values, DeviceSpan<T, Where> kept) const {
    queue_.copy(values, kept);
    return {0, kept.size()};
  }
  template <class T, ElementUpdate<T> Update, MemorySpace Where>
  void update_shards(DeviceSpan<const T, Where> gradients, DeviceSpan<T, Where> mirror, const Update& update) const {
    detail::update_on(queue_, update, mirror, gradients);
  }

 private:
  Q queue_;
};

}  // namespace dist
