#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <dist/cluster/address.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/sage_maker_resolver.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/json.hpp>

namespace dist {

DIST_INLINE_MPI ClusterSpec SageMakerResolver::cluster_spec() const {
  ClusterSpec cluster;
  for (const std::string& host : hosts()) cluster.append(TaskType::worker, {to_string(Address{host, port_})});
  return cluster;
}

DIST_INLINE_MPI std::optional<Task> SageMakerResolver::task() const {
  const std::vector<std::string> all = hosts();
  const std::string mine = require("SM_CURRENT_HOST");
  const auto found = std::find(all.begin(), all.end(), mine);
  if (found == all.end())
    throw InvalidArgument("SM_CURRENT_HOST is not one of SM_HOSTS", text("it is ", quoted(mine)),
                          "Pass both variables on as SageMaker set them");
  return Task{TaskType::worker, static_cast<std::size_t>(found - all.begin())};
}

DIST_INLINE_MPI std::string SageMakerResolver::require(const char* name) const {
  return environment_.require(name, "this is not a SageMaker environment",
                              "Start as a SageMaker training job, or use another resolver");
}

DIST_INLINE_MPI std::vector<std::string> SageMakerResolver::hosts() const {
  const io::Json json = io::parse_json(require("SM_HOSTS"), "SM_HOSTS");
  std::vector<std::string> names;
  const std::size_t count = json_array_size(json.get());  // 0 for what is no array
  for (std::size_t index = 0; index < count; ++index)
    if (const json_t* name = json_array_get(json.get(), index); json_is_string(name))
      names.emplace_back(io::string_in(name));
  if (names.empty() || names.size() != count)
    throw InvalidArgument("SM_HOSTS is not a list of host names",
                          text("it is ", io::written_json(json.get()).substr(0, 200)),
                          "Write [\"algo-1\", \"algo-2\"]");
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace dist
