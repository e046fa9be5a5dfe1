#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <future>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/coordinator/serve.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/core/text.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/deadline.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/error.hpp>
#include <dist/server/lifeline.hpp>
#include <dist/server/serve.hpp>
#include <dist/server/session.hpp>

namespace dist {

/// Parameter servers and workers of a cluster as threads of this process, with transport `T`. They end soon after their
/// coordinator, and then reject others. The destructor ends tasks without a coordinator.
template <rpc::Transport T>
class TaskThreads {
 public:
  /// `owner` names the owner in messages: "LocalJob".
  TaskThreads(ClusterSpec cluster, std::string owner) : cluster_(std::move(cluster)), owner_(std::move(owner)) {
    for (const server::Served& served : server::served_by(cluster_, owner_)) {
      std::packaged_task<void()> serves{[this, task = served.task] {
        try {
          static_cast<void>(serve<T>(SimpleResolver{cluster_, task}, {.keep_alive = net::Milliseconds{0}}));
        } catch (const CoordinatorUnavailable&) {  // ended by an exception, which the owner reports
        }
      }};
      ends_.push_back(serves.get_future());
      threads_.emplace_back([this, served, serves = std::move(serves)]() mutable {
        serves();
        refuse_others(served);
      });
    }
  }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;
  ~TaskThreads() {
    try {
      while (!have_ended()) dismiss();
      for (std::future<void>& end : ends_) end.get();
    } catch (const std::exception& error) {
      log_line(concat("a task of a ", owner_, " failed: ", error.what()));
    }
    {
      const std::lock_guard lock{mutex_};
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  /// The addresses of all tasks.
  [[nodiscard]] const ClusterSpec& cluster() const noexcept { return cluster_; }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool have_ended() const {
    const Clock::time_point until = Clock::now() + std::chrono::seconds{1};
    return std::all_of(ends_.begin(), ends_.end(), [&](const std::future<void>& end) {
      return end.wait_until(until) == std::future_status::ready;
    });
  }
  /// Ends the remaining tasks by a finished session, because a coordinator that ended early may not have greeted all.
  [[gnu::cold]] void dismiss() const {
    std::vector<server::Served> waiting;
    const std::vector<server::Served> all = server::served_by(cluster_, owner_);
    for (std::size_t task = 0; task < all.size(); ++task)
      if (ends_[task].wait_for(std::chrono::seconds{0}) != std::future_status::ready) waiting.push_back(all[task]);
    if (waiting.empty()) return;
    try {
      const server::Session<T> session{std::move(waiting)};
      std::this_thread::sleep_for(std::chrono::milliseconds{200});  // meanwhile, the session greets workers
    } catch (const Error&) {                                        // one of them has ended meanwhile
    }
  }
  /// Rejects other coordinators at the address of an ended task, until all tasks have ended.
  [[gnu::cold]] void refuse_others(const server::Served& served) {
    try {
      server::Lifeline<typename T::Exchange> ended{served.task, 0, server::Lifeline<typename T::Exchange>::State::left};
      const typename T::Server answers{served.endpoint, {}, ended.methods()};
      std::unique_lock lock{mutex_};
      changed_.wait(lock, [&] { return ending_; });
    } catch (const Error&) {  // the address belongs to another process, which replies
    }
  }

  const ClusterSpec cluster_;
  const std::string owner_;
  std::vector<std::future<void>> ends_;
  std::mutex mutex_;
  detail::ConditionVariable changed_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

/// Parameter servers and workers as threads of this process: asynchronous training on one machine, without
/// dependencies.
///
///     const dist::LocalJob job{1, 3};
///     dist::ParameterServer<dist::Local> strategy{job.resolver()};
///
/// The job must outlive the strategy, and ends with it: a second strategy on the same job throws InvalidArgument.
/// Without a strategy, the destructor ends the job.
class LocalJob {
 public:
  /// Throws InvalidArgument if a number is 0.
  LocalJob(std::size_t parameter_servers, std::size_t workers)
      : tasks_(cluster_of(parameter_servers, workers), "LocalJob") {}

  /// The resolver of the coordinator, which is this process.
  [[nodiscard]] SimpleResolver resolver() const { return SimpleResolver{tasks_.cluster(), Task{TaskType::chief, 0}}; }

 private:
  [[nodiscard]] static ClusterSpec cluster_of(std::size_t parameter_servers, std::size_t workers) {
    static std::atomic<unsigned> jobs{0};
    const std::string host = concat("local-job-", jobs.fetch_add(1));
    std::size_t port = 0;
    ClusterSpec cluster;
    const auto append = [&](TaskType type, std::size_t tasks) {
      for (std::size_t task = 0; task < tasks; ++task) cluster.append(type, {concat(host, ":", ++port)});
    };
    append(TaskType::parameter_server, parameter_servers);
    append(TaskType::worker, workers);
    validate_parameter_servers(cluster, Task{TaskType::chief, 0}, "LocalJob");
    return cluster;
  }

  TaskThreads<Local> tasks_;
};

}  // namespace dist
