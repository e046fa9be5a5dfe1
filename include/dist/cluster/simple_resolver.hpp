#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>

namespace dist {

/// Returns what it was given (spec M15).
class SimpleResolver {
 public:
  explicit SimpleResolver(ClusterSpec cluster, std::optional<Task> task = std::nullopt,
                          std::optional<std::size_t> num_accelerators = std::nullopt)
      : cluster_(std::move(cluster)), task_(task), num_accelerators_(num_accelerators) {}

  [[nodiscard]] ClusterSpec cluster_spec() const { return cluster_; }
  [[nodiscard]] std::optional<Task> task() const noexcept { return task_; }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return num_accelerators_; }
  [[nodiscard]] std::string describe() const { return "SimpleResolver"; }

 private:
  ClusterSpec cluster_;
  std::optional<Task> task_;
  std::optional<std::size_t> num_accelerators_;
};

}  // namespace dist
