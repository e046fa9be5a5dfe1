#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>

namespace dist {

/// The endpoint of a task in a hosted world.
using HostedTask = net::Endpoint;

/// The settings of a process that joins a hosted world.
struct HostedOptions {
  std::vector<HostedTask> tasks;                ///< in rank order, the same in every process
  std::size_t rank = 0;                         ///< of this process
  std::string secret;                           ///< of the job; empty: no authentication (`net::job_secret()`)
  std::string job;                              ///< only processes of the same job connect
  std::chrono::milliseconds deadline{120'000};  ///< for all to connect, and again for all to complete MPI_Init
  std::chrono::milliseconds patience = net::default_patience;  ///< before stderr lists the missing workers
  std::chrono::milliseconds grace{5'000};          ///< for the other processes to exit by themselves after a loss
  std::chrono::milliseconds handshake{3'000};      ///< for the peer of a connection to identify itself
  std::chrono::milliseconds silence{30'000};       ///< without heartbeats before a host counts as lost
  std::chrono::milliseconds port_patience{5'000};  ///< while an earlier job still uses the port
};

/// Assigns tasks to nodes: tasks whose addresses have the same host share a node; localhost, 127.0.0.1 and ::1 are
/// equal. Nodes are ordered by their lowest ranks.
class NodeMap {
 public:
  /// Assigns task `i`, which has rank i.
  explicit NodeMap(const std::vector<HostedTask>& tasks) {
    for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
      std::size_t node = 0;
      while (node < ranks_.size() && !same_host(tasks[ranks_[node].front()].host, tasks[rank].host)) ++node;
      if (node == ranks_.size()) ranks_.emplace_back();
      ranks_[node].push_back(rank);
      node_of_.push_back(node);
    }
  }

  /// The number of nodes.
  [[nodiscard]] std::size_t nodes() const { return ranks_.size(); }
  /// The node of a rank.
  [[nodiscard]] std::size_t node_of(std::size_t rank) const { return node_of_.at(rank); }
  /// The ranks in ascending order.
  [[nodiscard]] const std::vector<std::size_t>& ranks(std::size_t node) const { return ranks_.at(node); }
  /// Returns the lowest rank of the node, which starts the node's server at its address.
  [[nodiscard]] std::size_t first(std::size_t node) const { return ranks(node).front(); }

 private:
  [[nodiscard]] static bool same_host(const std::string& one, const std::string& other) {
    const auto here = [](const std::string& host) {
      return host == "127.0.0.1" || (net::names_loopback(host) && !host.starts_with("127."));
    };
    return one == other || (here(one) && here(other));
  }

  std::vector<std::vector<std::size_t>> ranks_;
  std::vector<std::size_t> node_of_;
};

/// Throws InvalidArgument for no tasks, a rank out of range, an address without a port or listed twice, or a loopback
/// address together with other hosts.
inline void check(const HostedOptions& options) {
  const std::vector<HostedTask>& tasks = options.tasks;
  if (options.rank >= tasks.size())
    throw InvalidArgument(concat("The list has no task ", options.rank),
                          concat("it has ", tasks.size(), " tasks, numbered from 0"),
                          "Give every process its own index in the list");
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    const std::string who = concat("Worker ", rank, "'s address ", to_string(tasks[rank]));
    if (tasks[rank].host.empty()) throw InvalidArgument(who + " has no host", "it is empty", "Write host:port");
    net::port_number(tasks[rank]);
    for (std::size_t other = 0; other < rank; ++other) {
      if (tasks[other] == tasks[rank])
        throw InvalidArgument(concat(who, " is also worker ", other, "'s address"),
                              "two tasks cannot listen at one address", "Give each task of a host its own port");
      if (net::names_loopback(tasks[other].host) != net::names_loopback(tasks[rank].host))
        throw InvalidArgument(concat(net::names_loopback(tasks[rank].host)
                                         ? who
                                         : concat("Worker ", other, "'s address ", to_string(tasks[other])),
                                     " is reachable only from its own machine"),
                              "other tasks are on other hosts", "List a network address of that machine");
    }
  }
}

}  // namespace dist
