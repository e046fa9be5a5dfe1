/// Reads what TF_CONFIG holds, in all the forms that schedulers write:
///
///   {"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "c:2222"]}, "task": {"type": "worker", "index": 0}}
///
/// A job may be a map from index to address instead of a list, the cluster may be called sparseCluster (Kubeflow's
/// dynamic workers), the chief "master" (SageMaker, AI Platform), and an index may be a string of digits. Other keys,
/// such as environment and rpc_layer, are left alone (spec M01).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/json.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/whole_number.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// What TF_CONFIG says. No tasks: a process on its own (spec M04).
struct TfConfig {
  ClusterSpec cluster;
  std::optional<TaskType> type{};
  std::optional<std::size_t> index{};
};

namespace detail {

/// How a job of the JSON is called in one scheduler's language, and how its names are called together.
struct JobNames {
  std::optional<TaskType> (*type_named)(std::string_view name);
  std::string_view allowed;
};

/// Turns JSON into a TfConfig; every refusal names the source and the place in it.
class TfConfigReader {
 public:
  TfConfigReader(std::string_view source, JobNames names) : source_(source), names_(names) {}

  [[nodiscard]] TfConfig read(std::string_view written) const {
    const nlohmann::json json = parse_json(written, source_);
    if (!json.is_object())
      refuse("is not an object", text("it is ", kind(json)), "Write {\"cluster\": {...}, \"task\": {...}}");
    TfConfig config;
    const nlohmann::json* cluster = member(json, "cluster");
    if (cluster == nullptr) cluster = member(json, "sparseCluster");
    if (cluster != nullptr) config.cluster = read_cluster(*cluster);
    if (const nlohmann::json* task = member(json, "task")) read_task(*task, config);
    return config;
  }

 private:
  static constexpr std::size_t max_index = 1'000'000;

  [[noreturn]] void refuse(std::string_view problem, std::string_view why, std::string_view suggestion) const {
    throw InvalidArgument(text(source_, " ", problem), why, suggestion);
  }
  [[nodiscard]] static std::string kind(const nlohmann::json& json) {
    return json.is_null() ? "null" : text(json.is_array() || json.is_object() ? "an " : "a ", json.type_name());
  }
  [[nodiscard]] static const nlohmann::json* member(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  [[nodiscard]] TaskType type_named(const std::string& name, std::string_view where) const {
    const std::optional<TaskType> type = names_.type_named(name);
    if (!type)
      refuse(text("has an unknown task type in '", where, "'"), text("'", name, "'; allowed are ", names_.allowed),
             "Correct the name, in lower case");
    return *type;
  }

  [[nodiscard]] ClusterSpec read_cluster(const nlohmann::json& jobs) const {
    if (!jobs.is_object())
      refuse("has a 'cluster' that is not an object", text("it is ", kind(jobs)),
             "Write {\"worker\": [\"host0:2222\", \"host1:2222\"]}");
    ClusterSpec cluster;
    for (const auto& [name, tasks] : jobs.items()) {
      const TaskType type = type_named(name, "cluster");
      if (cluster.has(type))
        refuse("lists the chief twice", "'chief' and 'master' are two names of one job", "Keep one of them");
      if (tasks.is_array())
        for (std::size_t index = 0; index < tasks.size(); ++index)
          cluster.add(Task{type, index}, read_address(tasks[index], name, text(index)));
      else if (tasks.is_object())
        for (const auto& [index, address] : tasks.items())
          cluster.add(Task{type, read_index(index, text("cluster.", name))}, read_address(address, name, index));
      else if (!tasks.is_null())
        refuse(text("has no list of tasks in 'cluster.", name, "'"), text("it is ", kind(tasks)),
               text("Write \"", name, "\": [\"host0:2222\"]"));
    }
    return cluster;
  }

  [[nodiscard]] std::string read_address(const nlohmann::json& address, std::string_view job,
                                         std::string_view index) const {
    if (!address.is_string() || address.get_ref<const std::string&>().empty())
      refuse(text("has no address for task ", index, " of '", job, "'"),
             text("it is ", address.is_string() ? "an empty string" : kind(address)),
             "Write a string such as \"host0:2222\"");
    return address.get<std::string>();
  }

  [[nodiscard]] std::size_t read_index(std::string_view digits, std::string_view where) const {
    const std::optional<std::size_t> index = whole_number(digits, max_index);
    if (!index)
      refuse(text("has a task index that cannot be used in '", where, "'"),
             text("'", digits, "' is not a whole number from 0 to ", max_index), "Number the tasks of a type from 0");
    return *index;
  }

  void read_task(const nlohmann::json& task, TfConfig& config) const {
    if (!task.is_object())
      refuse("has a 'task' that is not an object", text("it is ", kind(task)),
             "Write {\"type\": \"worker\", \"index\": 0}");
    if (const nlohmann::json* type = member(task, "type")) {
      if (!type->is_string())
        refuse("has a task type that is not a string", text("task.type is ", kind(*type)),
               text("Write one of ", names_.allowed));
      config.type = type_named(type->get<std::string>(), "task.type");
    }
    if (const nlohmann::json* index = member(task, "index"))
      config.index = read_index(index->is_string() ? index->get<std::string>() : index->dump(), "task.index");
  }

  std::string_view source_;
  JobNames names_;
};

}  // namespace detail

/// Reads the text of TF_CONFIG, which `source` names in messages. Throws InvalidArgument for anything else than the
/// forms above; whether the addresses and the task make sense is for `validate_cluster`.
[[nodiscard]] inline TfConfig parse_tf_config(std::string_view written, std::string_view source = "TF_CONFIG") {
  return detail::TfConfigReader{source, {task_type_named, "chief, worker, ps and evaluator"}}.read(written);
}

}  // namespace dist
