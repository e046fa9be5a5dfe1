// Parses any bytes as TF_CONFIG: a configuration that is the same after writing and reading it, or a dist::Error. A
// validated cluster has consistent ranks and addresses of tasks.
#include <dist/cluster/tf_config_resolver.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/cluster/address.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/error.hpp>

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::string written(const dist::TfConfig& config) {
  const dist::io::Json json{json_object()};
  json_t* const cluster = json_object();
  json_object_set_new(json.get(), "cluster", cluster);
  for (const dist::Task task : config.cluster.tasks()) {
    const std::string type(to_string(task.type));
    if (json_object_get(cluster, type.c_str()) == nullptr) json_object_set_new(cluster, type.c_str(), json_object());
    json_object_set_new(json_object_get(cluster, type.c_str()), std::to_string(task.index).c_str(),
                        json_string(config.cluster.task_address(task).c_str()));
  }
  json_t* const task = json_object();
  json_object_set_new(json.get(), "task", task);
  if (config.type) json_object_set_new(task, "type", json_string(std::string(to_string(*config.type)).c_str()));
  if (config.index) json_object_set_new(task, "index", json_integer(static_cast<json_int_t>(*config.index)));
  return dist::io::written_json(json.get());
}

void check_places(const dist::ClusterSpec& cluster) {
  const std::vector<dist::Task> tasks = sync_tasks(cluster);
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    require(id_in_cluster(cluster, tasks[rank]) == rank);
    require(is_chief(cluster, tasks[rank]) == (rank == 0));
    const dist::Address address = dist::parse_address(cluster.task_address(tasks[rank]), "a task that was validated");
    require(dist::parse_address(to_string(address), "the same") == address);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  try {
    const dist::TfConfig config = dist::parse_tf_config(text);
    require(config.cluster.tasks().size() <= size);
    const dist::TfConfig again = dist::parse_tf_config(written(config));
    require(again.cluster == config.cluster && again.cluster.checksum() == config.cluster.checksum());
    require(again.type == config.type && again.index == config.index);
    if (!config.type || !config.index) return 0;
    validate_multi_worker(config.cluster, dist::Task{*config.type, *config.index}, "TF_CONFIG");
    check_places(config.cluster);
  } catch (const dist::Error&) {
  }
  return 0;
}
