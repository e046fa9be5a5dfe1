#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <dist/comm/nccl/api.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/net/socket_address.hpp>

namespace dist::nccl {

/// The GPU of a replica, as workers exchange it: the values that NCCL compares. Longer texts are truncated.
struct GpuOfReplica {
  std::array<char, 160> host{};    ///< key of the machine (`host_key`), at most 159 characters
  std::array<char, 32> address{};  ///< PCI address of the GPU, at most 31 characters

  GpuOfReplica() = default;
  /// Copies both texts.
  GpuOfReplica(std::string_view host_key, std::string_view pci_address) {
    std::memcpy(host.data(), host_key.data(), std::min(host_key.size(), host.size() - 1));
    std::memcpy(address.data(), pci_address.data(), std::min(pci_address.size(), address.size() - 1));
  }
  friend bool operator==(const GpuOfReplica&, const GpuOfReplica&) = default;
};

/// Returns the key by which NCCL distinguishes machines: NCCL_HOSTID if it is set, else the host name and the kernel's
/// boot id.
[[nodiscard]] inline std::string host_key() {
  if (const char* const chosen = std::getenv("NCCL_HOSTID"); chosen != nullptr && *chosen != '\0') return chosen;
  const std::string machine = net::machine_id();
  return concat(net::host_name(), " ", std::string_view{machine}.substr(0, machine.find('/')));
}

/// Throws NcclError unless all workers run the same NCCL. `versions` has one version per worker, in rank order.
inline void require_one_version(std::span<const int> versions) {
  for (std::size_t worker = 1; worker < versions.size(); ++worker)
    if (versions[worker] != versions[0])
      throw NcclError(
          ncclInvalidUsage, "The workers do not have the same NCCL",
          concat("libnccl of worker 0 is ", version_text(versions[0]), ", libnccl of worker ", worker, " is ",
                 version_text(versions[worker])),
          "Install the same NCCL on all machines, or use MultiWorker<RingAllReduce>, which does not need NCCL");
}

/// Throws InvalidArgument if two replicas of any workers share a GPU. `gpus` has one entry per replica.
inline void require_gpus_of_their_own(std::span<const GpuOfReplica> gpus, std::size_t replicas_of_worker) {
  const auto name = [&](std::size_t replica) {
    return concat("replica ", replica, " (worker ", replica / replicas_of_worker, ")");
  };
  for (std::size_t replica = 1; replica < gpus.size(); ++replica)
    for (std::size_t other = 0; other < replica; ++other)
      if (gpus[other] == gpus[replica])
        throw InvalidArgument(
            "NCCL takes one replica on each GPU, but two replicas of MultiWorker<NcclAllReduce> share one",
            concat(name(other), " and ", name(replica), " are on GPU ", gpus[replica].address.data(), " of host ",
                   std::string_view{gpus[replica].host.data()}.substr(
                       0, std::string_view{gpus[replica].host.data()}.find(' '))),
            "Start no more workers and replicas on a host than it has GPUs, or give each replica its own GPU by "
            "MultiWorkerOptions::devices or CUDA_VISIBLE_DEVICES; replicas of one process can share GPUs under "
            "Mirrored<DirectAllReduce, Cuda>");
}

}  // namespace dist::nccl
