#include <dist/coordinator/local_job.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include <dist/rpc/local_transport.hpp>
#include <dist/strategy/parameter_server.hpp>

namespace {

using Clock = std::chrono::steady_clock;

/// A parameter server and two workers.
dist::ClusterSpec cluster_at(const std::string& host) {
  dist::ClusterSpec cluster;
  cluster.append(dist::TaskType::parameter_server, {host + ":1"});
  cluster.append(dist::TaskType::worker, {host + ":2", host + ":3"});
  return cluster;
}

}  // namespace

TEST_CASE("tasks in threads end with their coordinator, or without one") {
  const auto start = Clock::now();
  { const dist::TaskThreads<dist::Local> without_coordinator{cluster_at("alone"), "a test"}; }
  {
    const dist::TaskThreads<dist::Local> tasks{cluster_at("led"), "a test"};
    CHECK(tasks.cluster().num_tasks(dist::TaskType::worker) == 2);
    const dist::ParameterServer<dist::Local> strategy{
        dist::SimpleResolver{tasks.cluster(), dist::Task{dist::TaskType::chief, 0}}};
  }
  CHECK(Clock::now() - start < std::chrono::seconds{60});
}

TEST_CASE("workers that their coordinator has not greeted are told that it has ended") {
  const auto start = Clock::now();
  const dist::ClusterSpec cluster = cluster_at("forgetful");
  {
    const dist::TaskThreads<dist::Local> tasks{cluster, "a test"};
    auto servers = dist::server::served_by(cluster, "a test");
    std::erase_if(servers, [](const auto& served) { return served.task.type == dist::TaskType::worker; });
    const dist::server::Session<dist::Local> session{std::move(servers)};
  }
  CHECK(Clock::now() - start < std::chrono::seconds{60});
}
