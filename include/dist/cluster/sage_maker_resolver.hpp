#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/address.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/json.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// The hosts of a SageMaker training job, one worker each, sorted by name (spec M21): SM_HOSTS is a JSON list, and
/// SM_CURRENT_HOST one of it.
class SageMakerResolver {
 public:
  explicit SageMakerResolver(std::uint16_t port = 2223, Environment environment = Environment{})
      : port_(port), environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const {
    ClusterSpec cluster;
    for (const std::string& host : hosts()) cluster.append(TaskType::worker, {to_string(Address{host, port_})});
    return cluster;
  }
  [[nodiscard]] std::optional<Task> task() const {
    const std::vector<std::string> all = hosts();
    const std::string mine = require("SM_CURRENT_HOST");
    const auto found = std::find(all.begin(), all.end(), mine);
    if (found == all.end())
      throw InvalidArgument("SM_CURRENT_HOST is not one of SM_HOSTS", text("it is ", quoted(mine)),
                            "Pass both variables on as SageMaker set them");
    return Task{TaskType::worker, static_cast<std::size_t>(found - all.begin())};
  }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "SM_HOSTS"; }

 private:
  [[nodiscard]] std::string require(const char* name) const {
    return environment_.require(name, "this is not a SageMaker environment",
                                "Start as a SageMaker training job, or use another resolver");
  }

  [[nodiscard]] std::vector<std::string> hosts() const {
    const detail::Json json = detail::parse_json(require("SM_HOSTS"), "SM_HOSTS");
    std::vector<std::string> names;
    const std::size_t count = json_array_size(json.get());  // 0 for what is no array
    for (std::size_t index = 0; index < count; ++index)
      if (const json_t* name = json_array_get(json.get(), index); json_is_string(name))
        names.emplace_back(detail::string_in(name));
    if (names.empty() || names.size() != count)
      throw InvalidArgument("SM_HOSTS is not a list of host names",
                            text("it is ", detail::written_json(json.get()).substr(0, 200)),
                            "Write [\"algo-1\", \"algo-2\"]");
    std::sort(names.begin(), names.end());
    return names;
  }

  std::uint16_t port_;
  Environment environment_;
};

}  // namespace dist
