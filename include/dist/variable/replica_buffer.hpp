#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/device/cpu.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/slice.hpp>

namespace dist {

/// Memory of every replica for what lives no longer than a step, such as gradients: laid out like a variable, zero at
/// first, and never aggregated or kept equal by itself. Under a strategy that keeps one copy of its variables the
/// replicas still have a buffer each. Made by `strategy.buffer<T>(shape, name)`.
template <class T, class DeviceType = Cpu>
class ReplicaBuffer {
 public:
  using Element = T;
  using Device = DeviceType;
  using Memory = typename Device::Memory;
  using Span = typename Device::template Span<T>;

  /// Throws OutOfMemory.
  ReplicaBuffer(std::shared_ptr<Memory> memory, Shape shape, std::string name)
      : slice_(std::move(memory), shape.elements()), shape_(shape), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t size() const noexcept { return slice_.size(); }

  /// Where the replicas' parts start in the regions of the arena.
  [[nodiscard]] std::size_t offset() const noexcept { return slice_.offset(); }
  /// The arena that owns the buffer; it identifies the strategy.
  [[nodiscard]] const std::shared_ptr<Memory>& memory() const noexcept { return slice_.memory(); }

  /// The queue that works in the calling replica's memory, or in that of one replica of this process.
  [[nodiscard]] auto queue(const InReplica auto& replica) const { return detail::queue_of<Device>(replica); }
  [[nodiscard]] auto queue(const InCrossReplica auto& context, std::size_t local_replica) const {
    return detail::queue_of_replica<Device>(context, local_replica);
  }

  /// The calling replica's memory. Throws WrongStrategy when the context belongs to another strategy.
  [[nodiscard]] Span component(const InReplica auto& replica) const {
    require_same_strategy(replica);
    return slice_.on(replica.local_index());
  }
  /// The memory of one replica of this process, in contexts that see all of them.
  [[nodiscard]] Span component(const InCrossReplica auto& context, std::size_t local_replica) const {
    require_same_strategy(context);
    return slice_.on(local_replica);
  }

 private:
  template <class Context>
  void require_same_strategy(const Context& context) const {
    if (context.strategy().template replica_memory_on<Device>() != slice_.memory())
      throw WrongStrategy(concat("Buffer '", name_, "' was used with a strategy that did not make it"),
                          concat("the context belongs to ", context.strategy().describe()),
                          "Make the buffer with the strategy that runs the replica function");
  }

  Slice<T, Memory, typename Device::Space> slice_;
  Shape shape_;
  std::string name_;
};

}  // namespace dist
