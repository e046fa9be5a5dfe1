#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <dist/cluster/address.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/error.hpp>

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

  [[nodiscard]] ClusterSpec cluster_spec() const {
    if (!is_set()) return {};
    const std::size_t workers = number("WORLD_SIZE");
    constexpr std::size_t most = 1'000'000;
    if (workers == 0 || workers > most)
      throw InvalidArgument("WORLD_SIZE is no number of workers", text("it is ", workers), "Set it from 1 on");
    ClusterSpec cluster;
    for (std::size_t rank = 0; rank < workers; ++rank)
      cluster.add(Task{TaskType::worker, rank}, rank == 0 ? meeting_place() : "");
    return cluster;
  }
  [[nodiscard]] std::optional<Task> task() const {
    if (!is_set()) return std::nullopt;
    return Task{TaskType::worker, number("RANK")};
  }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "MASTER_ADDR"; }

 private:
  static constexpr const char* why = "MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE belong together";
  static constexpr const char* suggestion = "Start with torchrun or as a PyTorchJob, and pass all four on";

  [[nodiscard]] bool is_set() const { return environment_.get("MASTER_ADDR").has_value(); }
  [[nodiscard]] std::size_t number(const char* name) const {
    return environment_.require_number(name, why, suggestion);
  }
  [[nodiscard]] std::string meeting_place() const {
    const bool agent_listens = environment_.get("TORCHELASTIC_USE_AGENT_STORE") == "True";
    const std::size_t port = number("MASTER_PORT") + (agent_listens ? 1 : 0);
    if (port == 0 || port > 65535)
      throw InvalidArgument("The workers cannot meet at MASTER_PORT",
                            text("they would at port ", port, agent_listens ? ", next to torchrun's own" : ""),
                            "Choose a port from 1 to 65534");
    return to_string(Address{environment_.require("MASTER_ADDR", why, suggestion), static_cast<std::uint16_t>(port)});
  }

  Environment environment_;
};

}  // namespace dist
