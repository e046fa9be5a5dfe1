#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>

namespace dist {

/// A source of the cluster's tasks and of this process's task (spec M23).
///
/// - `cluster_spec()`: the tasks; empty for a single process.
/// - `task()`: the task of this process, if it is one of them.
/// - `num_accelerators()`: devices per process; empty: the strategy decides (spec M05, A10).
/// - `describe()`: the source, for messages: "TF_CONFIG".
///
/// Functions read the environment at each call, and throw InvalidArgument naming the variable.
template <class R>
concept ClusterResolver = requires(const R& resolver) {
  { resolver.cluster_spec() } -> std::same_as<ClusterSpec>;
  { resolver.task() } -> std::same_as<std::optional<Task>>;
  { resolver.num_accelerators() } -> std::same_as<std::optional<std::size_t>>;
  { resolver.describe() } -> std::convertible_to<std::string>;
};

/// A resolver for processes that a launcher starts together, and terminates together if one fails.
template <class R>
concept EndsTogether = ClusterResolver<R> && requires {
  requires R::ends_together;
};

/// Returns `given`, or if empty, the resolver's secret.
template <ClusterResolver R>
[[nodiscard]] std::string job_secret(std::string given, const R& resolver) {
  if constexpr (requires {
                  { resolver.secret() } -> std::convertible_to<std::string>;
                })
    if (given.empty()) return resolver.secret();
  return given;
}

/// Returns the given values (spec M15).
class SimpleResolver {
 public:
  /// Without `task`, this process is not a task of the cluster.
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

/// The union of several clusters; the first also supplies this process's task (spec M16).
///
/// Tasks of a type are renumbered. If a cluster has gaps in its indices, all keep theirs, and `cluster_spec` throws
/// InvalidArgument for duplicates.
template <ClusterResolver First, ClusterResolver... Others>
class UnionResolver {
 public:
  /// `first` also supplies the task and the number of devices.
  explicit UnionResolver(First first, Others... others) : resolvers_(std::move(first), std::move(others)...) {}

  [[nodiscard]] ClusterSpec cluster_spec() const {
    const std::vector<ClusterSpec> clusters =
        std::apply([](const auto&... each) { return std::vector<ClusterSpec>{each.cluster_spec()...}; }, resolvers_);
    ClusterSpec all;
    for (const TaskType type : task_types) {
      bool contiguous = true;
      for (const ClusterSpec& each : clusters) contiguous = contiguous && each.is_contiguous(type);
      for (const ClusterSpec& each : clusters)
        for (const std::size_t index : each.task_indices(type))
          all.add(Task{type, contiguous ? all.num_tasks(type) : index}, each.task_address(Task{type, index}));
    }
    return all;
  }
  [[nodiscard]] std::optional<Task> task() const { return std::get<0>(resolvers_).task(); }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const {
    return std::get<0>(resolvers_).num_accelerators();
  }
  [[nodiscard]] std::string describe() const {
    return std::apply(
        [](const First& first, const Others&... others) {
          std::string names = first.describe();
          ((names += " and " + std::string(others.describe())), ...);
          return names;
        },
        resolvers_);
  }

 private:
  std::tuple<First, Others...> resolvers_;
};

}  // namespace dist
