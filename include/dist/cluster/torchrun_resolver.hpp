#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The processes that torchrun or Kubeflow's PyTorchJob started: WORLD_SIZE workers, of which this one has the number
/// RANK. Only worker 0 has an address, MASTER_ADDR and MASTER_PORT: the others meet it there. Without these variables
/// there is no cluster.
///
/// Where torchrun's agent listens at MASTER_PORT itself (TORCHELASTIC_USE_AGENT_STORE), the workers meet at the next
/// port.
class TorchrunResolver {
 public:
  explicit TorchrunResolver(Environment environment = Environment{}) : environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "MASTER_ADDR"; }

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
