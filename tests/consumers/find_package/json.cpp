#include <dist/cluster/tf_config_resolver.hpp>

int main() {
  const dist::TfConfig config =
      dist::parse_tf_config(R"({"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 1}})");
  return config.cluster.num_tasks(dist::TaskType::worker) == 2 ? 0 : 1;
}
