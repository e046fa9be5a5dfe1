#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/shared_memory_all_reduce.hpp>
#include <dist/comm/thread.hpp>
#include <dist/context/placement.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/threaded.hpp>

namespace dist {

struct MirroredOptions {
  /// Replicas, one per device. More than there are devices share them.
  std::size_t replicas = Cpu::count();
  /// The longest that a replica waits for another to come to a collective.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
};

/// Synchronous training on several devices of one process (spec A01): one replica per device, every variable mirrored on
/// each, gradients reduced by `Ops`.
template <class Ops, class DeviceType = Cpu>
class Mirrored : public Threaded<Mirrored<Ops, DeviceType>, Ops, DeviceType> {
  static_assert(CrossDeviceOps<Ops, ThreadCommunicator>,
                "Mirrored<Ops> needs cross-device ops that work between threads, such as SharedMemoryAllReduce or "
                "ReductionToOneDevice: an empty struct with a name and a nested template On<Communicator>");

 public:
  using Placement = OnEveryReplica;
  using Memory = typename DeviceType::Memory;

  /// One replica per device that this process may use.
  Mirrored() : Mirrored(MirroredOptions{}) {}
  /// Throws InvalidArgument for zero replicas, OutOfMemory when the system gives no threads or addresses for them.
  explicit Mirrored(std::size_t replicas) : Mirrored(MirroredOptions{.replicas = replicas}) {}
  explicit Mirrored(MirroredOptions options)
      : Mirrored::Threaded(options.replicas, options.timeout), memory_(std::make_shared<Memory>(options.replicas)) {}

  [[nodiscard]] const std::shared_ptr<Memory>& memory() const noexcept { return memory_; }
  [[nodiscard]] const std::shared_ptr<Memory>& replica_memory() const noexcept { return memory_; }

  /// "Mirrored<SharedMemoryAllReduce, Cpu>: 2 replicas on /cpu:0 /cpu:1"
  [[nodiscard]] std::string describe() const {
    return this->describe_as(text("Mirrored<", Ops::name, ", ", DeviceType::name, ">"));
  }

 private:
  std::shared_ptr<Memory> memory_;
};

}  // namespace dist
