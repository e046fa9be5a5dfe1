#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cpu.hpp>
#include <dist/device/device.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/thread_replicas.hpp>
#include <dist/variable/store.hpp>

namespace dist {

/// The options of a CentralStorage.
using CentralStorageOptions = MirroredOptions;

namespace detail {

/// Defined in <dist/comm/direct/direct_collectives.hpp>, which only programs with such devices include.
template <class DeviceType>
struct DirectOps;

/// Checks that the devices share memory, with one error message each; `Replicas` are then valid.
template <class Parameters, class Replicas>
struct CentralDevices {
  static constexpr bool is_of_host = Parameters::Space::host_accessible;
  static_assert(is_of_host,
                "CentralStorage keeps one copy in host memory: name the host's devices first, as in "
                "CentralStorage<Cpu, Cuda>, or use Mirrored");
  static constexpr bool share_host = std::same_as<Parameters, Replicas>;
  static constexpr bool is_reached = share_host || ReachesHostMemory<Replicas>;
  static_assert(is_reached,
                "CentralStorage keeps one copy in host memory, which these devices cannot access: use Mirrored");

  using Checked = std::conditional_t<is_of_host && is_reached, Replicas, Cpu>;
  using Ops = std::conditional_t<Checked::Space::host_accessible, ThreadAllReduce, DirectOps<Checked>>;
  using Part = ThreadReplicas<Ops, Checked>;
};

}  // namespace detail

/// Synchronous training on several devices of one process, with one copy of every variable in host memory (spec A18).
/// Needs less memory than Mirrored, and an update writes each element once.
///
/// `CentralStorage<Cpu, Cuda>` has its replicas on GPUs, whose kernels access the one copy in mapped, pinned memory.
/// Gradients and activations are in the GPUs' memory. Supports up to 8 replicas. Needs <dist/comm/cuda/policies.cuh>.
///
/// A write in a replica function is aggregated and applied once, so it needs an aggregation (spec A19). Reads return
/// the same value in every context: OnRead has no effect (spec G45).
template <class ParameterDevice, class ReplicaDevice = ParameterDevice>
class CentralStorage : public BasicStrategy<CentralStorage<ParameterDevice, ReplicaDevice>,
                                            typename detail::CentralDevices<ParameterDevice, ReplicaDevice>::Part,
                                            OneProcess, CentralStore> {
 public:
  /// Places one replica on each available device. All constructors throw InvalidArgument for invalid devices or
  /// replicas, and OutOfMemory if the system lacks threads or address space.
  CentralStorage() : CentralStorage(CentralStorageOptions{}) {}
  /// Places `replicas` replicas on the available devices.
  explicit CentralStorage(std::size_t replicas) : CentralStorage(CentralStorage::Replicas::with_replicas(replicas)) {}
  /// Places one replica on each of `devices` (spec A01, A02): {"/cpu:1", "/cpu:0"}.
  explicit CentralStorage(std::vector<std::string> devices)
      : CentralStorage(CentralStorage::Replicas::on_devices(std::move(devices))) {}
  /// Places the replicas according to `options`.
  explicit CentralStorage(const CentralStorageOptions& options);

  /// "CentralStorage<Cpu>: 2 replicas on /cpu:0 /cpu:1, one copy of every variable"
  [[nodiscard]] std::string describe() const;
};

template <class ParameterDevice, class ReplicaDevice>
CentralStorage<ParameterDevice, ReplicaDevice>::CentralStorage(const CentralStorageOptions& options)
    : CentralStorage::BasicStrategy(options) {}

template <class ParameterDevice, class ReplicaDevice>
std::string CentralStorage<ParameterDevice, ReplicaDevice>::describe() const {
  std::string devices{ParameterDevice::name};
  if constexpr (!std::same_as<ParameterDevice, ReplicaDevice>) devices += concat(", ", ReplicaDevice::name);
  return concat("CentralStorage<", devices, ">: ", this->replicas_part().describe(), ", one copy of every variable");
}

#ifdef DIST_COMPILED
extern template class BasicStrategy<CentralStorage<Cpu>, ThreadReplicas<ThreadAllReduce, Cpu>, OneProcess,
                                    CentralStore>;
extern template class CentralStorage<Cpu>;
#endif

}  // namespace dist
