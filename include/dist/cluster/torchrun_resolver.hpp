#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The processes that torchrun or Kubeflow's PyTorchJob started: WORLD_SIZE workers, of which this one has the number
/// RANK. Only worker 0 has an address, MASTER_ADDR and MASTER_PORT: the workers meet there. Without these variables
/// there is no cluster.
///
/// Where torchrun's agent listens at MASTER_PORT itself (TORCHELASTIC_USE_AGENT_STORE), the workers meet at the next
/// port, or at one of `other_ports` if that is in use; MASTER_ADDR may then be the host of other workers than worker 0.
/// MASTER_ADDR may be a loopback address on its own host, as in the master of a PyTorchJob: the workers then meet on all
/// network interfaces, unless LOCAL_WORLD_SIZE says that all of them are on this host.
class TorchrunResolver {
 public:
  explicit TorchrunResolver(Environment environment = Environment{}) : environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "MASTER_ADDR"; }

  /// True if torchrun's agent listens at MASTER_PORT.
  [[nodiscard]] bool agent_listens() const { return environment_.get("TORCHELASTIC_USE_AGENT_STORE") == "True"; }
  /// The ports at which the workers meet if the one after torchrun's own is in use. They differ widely between jobs on
  /// neighbouring ports.
  [[nodiscard]] std::vector<std::uint16_t> other_ports() const;
  /// The number of this process on its host, LOCAL_RANK.
  [[nodiscard]] std::optional<std::size_t> local_rank() const { return environment_.number("LOCAL_RANK"); }
  /// True unless LOCAL_WORLD_SIZE says that all workers are on this host.
  [[nodiscard]] bool workers_elsewhere() const;
  /// The name of the job, which other jobs at the same meeting place do not have: TORCHELASTIC_RUN_ID.
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
