#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The processes that torchrun or Kubeflow's PyTorchJob started: WORLD_SIZE workers; this one is number RANK. Only
/// worker 0 has an address, MASTER_ADDR and MASTER_PORT, to which the others connect. The cluster is empty without
/// these variables.
///
/// If torchrun's agent listens at MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE), the workers use the next port, or one of
/// `other_ports` if it is in use; MASTER_ADDR may then be another host than worker 0's. MASTER_ADDR may be a loopback
/// address on its own host, as in a PyTorchJob's master. The rendezvous then uses all network interfaces, unless
/// LOCAL_WORLD_SIZE shows that all workers are on this host.
class TorchrunResolver {
 public:
  /// `environment` contains the variables of torchrun.
  explicit TorchrunResolver(Environment environment = Environment{}) : environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "MASTER_ADDR"; }

  /// True if torchrun's agent listens at MASTER_PORT.
  [[nodiscard]] bool agent_listens() const { return environment_.get("TORCHELASTIC_USE_AGENT_STORE") == "True"; }
  /// Alternative ports for the rendezvous, very different for jobs with adjacent ports.
  [[nodiscard]] std::vector<std::uint16_t> other_ports() const;
  /// The index of this process on its host, LOCAL_RANK.
  [[nodiscard]] std::optional<std::size_t> local_rank() const { return environment_.number("LOCAL_RANK"); }
  /// True unless LOCAL_WORLD_SIZE shows that all workers are on this host.
  [[nodiscard]] bool workers_elsewhere() const;
  /// TORCHELASTIC_RUN_ID, which distinguishes jobs at the same address.
  [[nodiscard]] std::string job() const { return environment_.get("TORCHELASTIC_RUN_ID").value_or(""); }

 private:
  static constexpr const char* why = "MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE belong together";
  static constexpr const char* suggestion = "Start with torchrun or as a PyTorchJob, and pass all four on";

  [[nodiscard]] bool is_set() const { return environment_.get("MASTER_ADDR").has_value(); }
  [[nodiscard]] std::size_t number(const char* name) const;
  [[nodiscard]] std::string meeting_place() const;

  Environment environment_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/torchrun_resolver.ipp>
#endif
