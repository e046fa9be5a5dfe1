#pragma once

#include <dist/cluster/address.hpp>
#include <dist/cluster/tf_config_resolver.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/core/text.hpp>
#include <dist/io/json.hpp>

namespace dist {

DIST_INLINE ClusterSpec TfConfigResolver::cluster_spec() const { return config().cluster; }

DIST_INLINE std::optional<Task> TfConfigResolver::task() const {
  const TfConfig found = config();
  const std::optional<TaskType> type = given_.type ? given_.type : found.type;
  const std::optional<std::size_t> index = given_.index ? given_.index : found.index;
  if (!type && !index) return std::nullopt;
  if (!type || !index)
    throw InvalidArgument(concat(variable_, " does not specify the task of this process"),
                          type ? concat("task.type is '", to_string(*type), "', but task.index is missing")
                               : concat("task.index is ", *index, ", but task.type is missing"),
                          "Write both, such as {\"type\": \"worker\", \"index\": 0}");
  return Task{*type, *index};
}

DIST_INLINE TfConfig TfConfigResolver::config() const {
  const std::optional<std::string> written = environment_.get(variable_);
  return written && !written->empty() ? parse_tf_config(*written, variable_, names_) : TfConfig{};
}

namespace detail {

/// Converts JSON to a TfConfig; errors name the source and the position.
class TfConfigReader {
 public:
  TfConfigReader(std::string_view source, JobNames names) : source_(source), names_(names) {}

  [[nodiscard, gnu::cold]] TfConfig read(std::string_view written) const {
    const io::Json json = io::parse_json(written, source_);
    if (!json_is_object(json.get()))
      refuse("is not an object", concat("it is ", io::kind_of(json.get())),
             "Write {\"cluster\": {...}, \"task\": {...}}");
    TfConfig config;
    json_t* cluster = member(json.get(), "cluster");
    json_t* const sparse = cluster == nullptr ? member(json.get(), "sparseCluster") : nullptr;
    if (cluster == nullptr) cluster = sparse;
    if (cluster != nullptr) config.cluster = read_cluster(cluster);
    if (sparse != nullptr && config.cluster.empty()) {
      static Warning no_task;
      no_task.emit(
          concat(source_,
                 " has a sparseCluster without tasks, so this process works alone. Kubeflow writes that for the "
                 "chief of a job with enableDynamicWorker: set it to false. DIST_WARNINGS=0 silences this."));
    }
    if (const json_t* task = member(json.get(), "task")) read_task(task, config);
    return config;
  }

 private:
  static constexpr std::size_t max_index = 1'000'000;

  [[noreturn]] void refuse(std::string_view problem, std::string_view why, std::string_view suggestion) const {
    throw InvalidArgument(concat(source_, " ", problem), why, suggestion);
  }
  [[nodiscard]] static json_t* member(const json_t* object, const char* key) {
    json_t* const found = json_object_get(object, key);
    return json_is_null(found) ? nullptr : found;
  }

  [[nodiscard, gnu::cold]] TaskType type_named(std::string_view name, std::string_view where) const {
    const std::optional<TaskType> type = names_.type_named(name);
    if (!type)
      refuse(concat("has an unknown task type in ", quoted(where)),
             concat(quoted(name), "; allowed are ", names_.allowed), "Correct the name, in lower case");
    return *type;
  }

  [[nodiscard, gnu::cold]] ClusterSpec read_cluster(json_t* jobs) const {
    if (!json_is_object(jobs))
      refuse("has a 'cluster' that is not an object", concat("it is ", io::kind_of(jobs)),
             "Write {\"worker\": [\"host0:2222\", \"host1:2222\"]}");
    ClusterSpec cluster;
    const char* name = nullptr;
    json_t* tasks = nullptr;
    json_object_foreach(jobs, name, tasks) {
      const TaskType type = type_named(name, "cluster");
      if (cluster.has(type))
        refuse("lists the chief twice", "'chief' and 'master' are two names of one job", "Keep one of them");
      if (json_is_array(tasks)) {
        for (std::size_t index = 0; index < json_array_size(tasks); ++index)
          cluster.add(Task{type, index}, read_address(json_array_get(tasks, index), name, concat(index)));
      } else if (json_is_object(tasks)) {
        const char* index = nullptr;
        const json_t* address = nullptr;
        json_object_foreach(tasks, index, address)
            cluster.add(Task{type, read_index(index, concat("cluster.", name))}, read_address(address, name, index));
      } else if (!json_is_null(tasks)) {
        refuse(concat("has no list of tasks in 'cluster.", name, "'"), concat("it is ", io::kind_of(tasks)),
               concat("Write \"", name, "\": [\"host0:2222\"]"));
      }
    }
    return cluster;
  }

  [[nodiscard, gnu::cold]] std::string read_address(const json_t* address, std::string_view job,
                                                    std::string_view index) const {
    if (!json_is_string(address) || io::string_in(address).empty())
      refuse(concat("has no address for task ", printable(index, 80), " of ", quoted(job)),
             concat("it is ", json_is_string(address) ? "an empty string" : io::kind_of(address)),
             "Write a string such as \"host0:2222\"");
    return std::string(io::string_in(address));
  }

  [[nodiscard, gnu::cold]] std::size_t read_index(std::string_view digits, std::string_view where) const {
    const std::optional<std::size_t> index = whole_number(digits, max_index);
    if (!index)
      refuse(concat("has a task index that cannot be used in ", quoted(where)),
             concat(quoted(digits), " is not a whole number from 0 to ", max_index),
             "Number the tasks of a type from 0");
    return *index;
  }

  [[gnu::cold]] void read_task(const json_t* task, TfConfig& config) const {
    if (!json_is_object(task))
      refuse("has a 'task' that is not an object", concat("it is ", io::kind_of(task)),
             "Write {\"type\": \"worker\", \"index\": 0}");
    if (const json_t* type = member(task, "type")) {
      if (!json_is_string(type))
        refuse("has a task type that is not a string", concat("task.type is ", io::kind_of(type)),
               concat("Write one of ", names_.allowed));
      config.type = type_named(io::string_in(type), "task.type");
    }
    if (const json_t* index = member(task, "index"))
      config.index = read_index(json_is_string(index) ? io::string_in(index) : io::written_json(index), "task.index");
  }

  std::string_view source_;
  JobNames names_;
};

}  // namespace detail

DIST_INLINE TfConfig parse_tf_config(std::string_view written, std::string_view source, detail::JobNames names) {
  return detail::TfConfigReader{source, names}.read(written);
}

}  // namespace dist
