#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>

namespace dist {

/// The tasks of several clusters, of which the first also says which task this process is (spec M16).
///
/// The tasks of a type are concatenated and numbered anew. Where one of the clusters has gaps in its
/// numbers, all keep theirs, and `cluster_spec` throws InvalidArgument when two clusters use the same.
template <ClusterResolver First, ClusterResolver... Others>
class UnionResolver {
 public:
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
