#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/simple_resolver.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/coordinator/task_threads.hpp>
#include <dist/core/text.hpp>
#include <dist/rpc/local_transport.hpp>

namespace dist {

/// Parameter servers and workers that are threads of this process: asynchronous training on one machine, with no package.
///
///     const dist::LocalJob job{1, 3};
///     dist::ParameterServer<dist::Local> strategy{job.resolver()};
///
/// It outlives the strategy, whose end is theirs: another strategy needs another job, and throws InvalidArgument on this one.
/// Where there was none, the destructor ends them.
class LocalJob {
 public:
  /// Throws InvalidArgument where there is no parameter server or no worker.
  LocalJob(std::size_t parameter_servers, std::size_t workers)
      : tasks_(cluster_of(parameter_servers, workers), "LocalJob") {}

  /// That of the coordinator, the process itself.
  [[nodiscard]] SimpleResolver resolver() const { return SimpleResolver{tasks_.cluster(), Task{TaskType::chief, 0}}; }

 private:
  [[nodiscard]] static ClusterSpec cluster_of(std::size_t parameter_servers, std::size_t workers) {
    static std::atomic<unsigned> jobs{0};
    const std::string host = text("local-job-", jobs.fetch_add(1));
    std::size_t port = 0;
    ClusterSpec cluster;
    const auto append = [&](TaskType type, std::size_t tasks) {
      for (std::size_t task = 0; task < tasks; ++task) cluster.append(type, {text(host, ":", ++port)});
    };
    append(TaskType::parameter_server, parameter_servers);
    append(TaskType::worker, workers);
    validate_parameter_servers(cluster, Task{TaskType::chief, 0}, "LocalJob");
    return cluster;
  }

  TaskThreads<Local> tasks_;
};

}  // namespace dist
