#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>

namespace dist {

/// Something that knows which processes make up the job, and which of them this one is (spec M23).
///
/// - `cluster_spec()`: the tasks. Empty means one process on its own, which is no mistake.
/// - `task()`: which of them this process is; none where it is none of them.
/// - `num_accelerators()`: the devices that each process is to use; none leaves it to the strategy (spec M05, A10).
/// - `describe()`: what the answers come from, for messages: "TF_CONFIG".
///
/// Functions that read the environment do so at each call, and throw InvalidArgument naming the variable.
template <class R>
concept ClusterResolver = requires(const R& resolver) {
  { resolver.cluster_spec() } -> std::same_as<ClusterSpec>;
  { resolver.task() } -> std::same_as<std::optional<Task>>;
  { resolver.num_accelerators() } -> std::same_as<std::optional<std::size_t>>;
  { resolver.describe() } -> std::convertible_to<std::string>;
};

/// A resolver of processes that a launcher starts together, and ends together when one of them is lost.
template <class R>
concept EndsTogether = ClusterResolver<R> && requires {
  requires R::ends_together;
};

/// The secret of the job: the given one, or that of the resolver where none is given and the resolver has one.
template <ClusterResolver R>
[[nodiscard]] std::string job_secret(std::string given, const R& resolver) {
  if constexpr (requires {
                  { resolver.secret() } -> std::convertible_to<std::string>;
                })
    if (given.empty()) return resolver.secret();
  return given;
}

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
