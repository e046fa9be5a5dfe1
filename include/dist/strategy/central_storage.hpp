#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/strategy_of.hpp>
#include <dist/strategy/thread_replicas.hpp>
#include <dist/variable/store/central.hpp>

namespace dist {

using CentralStorageOptions = ThreadedOptions;

/// Synchronous training on several devices of one process with one copy of every variable, in the host's memory, that
/// all replicas read (spec A18). Takes less memory than Mirrored, and an update writes each element once.
///
/// A write in a replica function is aggregated and applied once, so a variable that is written there needs an
/// aggregation (spec A19). Reading gives the one value in every context: OnRead means nothing here (spec G45).
template <class DeviceType>
class CentralStorage : public StrategyOf<CentralStorage<DeviceType>, ThreadReplicas<SharedMemoryAllReduce, DeviceType>,
                                         OneProcess, CentralStore> {
  static constexpr bool is_reached = DeviceType::Place::host_accessible;
  static_assert(is_reached,
                "CentralStorage keeps one copy in the host's memory, which these devices do not share: use Mirrored");

 public:
  /// One replica on each device that this process may use. For all of them: throws InvalidArgument for devices or
  /// replicas that cannot be, OutOfMemory when the system gives no threads or addresses for them.
  CentralStorage() : CentralStorage(CentralStorageOptions{}) {}
  explicit CentralStorage(std::size_t replicas) : CentralStorage(CentralStorage::Replicas::with_replicas(replicas)) {}
  /// One replica on each of `devices`, in their order (spec A01, A02): {"/cpu:1", "/cpu:0"}.
  explicit CentralStorage(std::vector<std::string> devices)
      : CentralStorage(CentralStorage::Replicas::on_devices(std::move(devices))) {}
  explicit CentralStorage(const CentralStorageOptions& options) : CentralStorage::StrategyOf(options) {}

  /// "CentralStorage<Cpu>: 2 replicas on /cpu:0 /cpu:1, one copy of every variable"
  [[nodiscard]] std::string describe() const {
    return text("CentralStorage<", DeviceType::name, ">: ", this->replicas_part().describe(),
                ", one copy of every variable");
  }
};

}  // namespace dist
