#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/simple_resolver.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/comm/local_transport.hpp>
#include <dist/coordinator/serve.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/say.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/deadline.hpp>
#include <dist/server/served.hpp>
#include <dist/server/session.hpp>

namespace dist {

/// Parameter servers and workers that are threads of this process: asynchronous training on one machine, with no package.
///
///     const dist::LocalJob job{1, 3};
///     dist::ParameterServer<dist::Local> strategy{job.resolver()};
///
/// It outlives the strategy, whose end is theirs. Where there was none, the destructor ends them.
class LocalJob {
 public:
  /// Throws InvalidArgument where there is no parameter server or no worker.
  LocalJob(std::size_t parameter_servers, std::size_t workers) {
    static std::atomic<unsigned> jobs{0};
    const std::string host = text("local-job-", jobs.fetch_add(1));
    std::size_t port = 0;
    const auto append = [&](TaskType type, std::size_t tasks) {
      for (std::size_t task = 0; task < tasks; ++task) cluster_.append(type, {text(host, ":", ++port)});
    };
    append(TaskType::parameter_server, parameter_servers);
    append(TaskType::worker, workers);
    validate_parameter_servers(cluster_, Task{TaskType::chief, 0}, "LocalJob");
    for (const Task task : cluster_.tasks()) {
      std::packaged_task<void()> serves{[cluster = cluster_, task] {
        static_cast<void>(serve<Local>(SimpleResolver{cluster, task}, {.linger = net::Milliseconds{0}}));
      }};
      ends_.push_back(serves.get_future());
      threads_.emplace_back(std::move(serves));
    }
  }
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;
  ~LocalJob() {
    try {
      if (!ended()) dismiss();
      for (std::thread& thread : threads_) thread.join();
      for (std::future<void>& end : ends_) end.get();
    } catch (const std::exception& error) {
      say(text("a task of a LocalJob failed: ", error.what()));
      for (std::thread& thread : threads_)
        if (thread.joinable()) thread.join();
    }
  }

  /// That of the coordinator, the process itself.
  [[nodiscard]] SimpleResolver resolver() const { return SimpleResolver{cluster_, Task{TaskType::chief, 0}}; }

 private:
  /// Whether all have ended, as they do soon after their coordinator.
  [[nodiscard]] bool ended() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{1};
    for (const std::future<void>& end : ends_)
      if (end.wait_until(until) != std::future_status::ready) return false;
    return true;
  }
  /// Greets them as a coordinator whose work is done.
  void dismiss() const {
    const server::Session<Local> session{server::served_by(cluster_, "LocalJob")};
  }

  ClusterSpec cluster_;
  std::vector<std::future<void>> ends_;
  std::vector<std::thread> threads_;
};

}  // namespace dist
