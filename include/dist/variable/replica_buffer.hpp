#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/device/cpu.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/variable_core.hpp>

namespace dist {

/// A buffer on each replica for data of one step, such as gradients: with the layout of a variable, initially zero, and
/// never aggregated or synchronized automatically. Separate even under strategies with a single copy of each variable.
/// Made by `strategy.buffer<T>(shape, name)`.
template <class T, class DeviceType = Cpu>
class ReplicaBuffer : public detail::VariableCore<typename DeviceType::Memory> {
  using Core = detail::VariableCore<typename DeviceType::Memory>;

 public:
  using Element = T;
  /// The type of the replicas' devices.
  using Device = DeviceType;
  /// The memory that the arrays are in.
  using Memory = typename Device::Memory;
  /// The elements of one replica, in its device's memory.
  using Span = typename Device::template Span<T>;

  /// Throws OutOfMemory.
  ReplicaBuffer(const std::shared_ptr<Memory>& memory, Shape shape, std::string name)
      : Core(memory, shape, std::move(name), sizeof(T)) {}

  /// Returns the queue for the memory of the calling replica, or of one replica of this process.
  [[nodiscard]] auto queue(const InReplica auto& replica) const { return detail::queue_of<Device>(replica); }
  /// Returns the queue for the memory of a replica of this process.
  [[nodiscard]] auto queue(const InCrossReplica auto& context, std::size_t local_replica) const {
    return detail::queue_of_replica<Device>(context, local_replica);
  }

  /// Returns the calling replica's memory. Throws WrongStrategy if the context belongs to another strategy.
  [[nodiscard]] Span component(const InReplica auto& replica) const {
    require_same_strategy(replica);
    return on(replica.local_index());
  }
  /// Returns the memory of one replica of this process, in cross-replica contexts.
  [[nodiscard]] Span component(const InCrossReplica auto& context, std::size_t local_replica) const {
    require_same_strategy(context);
    return on(local_replica);
  }

 private:
  template <class Context>
  void require_same_strategy(const Context& context) const {
    if (context.strategy().template replica_memory_on<Device>() != this->memory())
      detail::refuse_strategy(false, this->name(), context.strategy().describe());
  }
  [[nodiscard]] Span on(std::size_t local_replica) const {
    return Core::template on<T, typename Device::Space>(local_replica);
  }
};

}  // namespace dist
