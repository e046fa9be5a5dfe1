#include <dist/coordinator/serve.hpp>

#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/server/client.hpp>

#include <doctest/doctest.h>

#include "coordinator/local_workers.hpp"
#include "server/served_threads.hpp"
#include "support/exception_suppressions.hpp"

namespace {

using namespace std::chrono_literals;
using dist::ClusterSpec;
using dist::Local;
using dist::SimpleResolver;
using dist::Task;
using dist::TaskType;
using dist::WorkerContext;
using dist_test::ps_0;
using dist_test::worker_0;
using Client = dist::server::Client<Local>;
using Session = dist::server::Session<Local>;

constexpr std::uint64_t shard = 7;
const dist::net::Endpoint server_address{"ps0", "1"}, worker_address{"worker", "1"};

/// Adds to a variable on the parameter server, and returns its new value.
constexpr auto step = [](WorkerContext& worker, float summand) {
  CHECK(worker.servers() == std::vector{to_string(server_address)});
  Client client{0, server_address};
  client.push(shard, dist::sum, std::span<const float>{&summand, 1});
  float value = 0;
  client.pull(shard, std::span{&value, 1});
  return value;
};

}  // namespace

TEST_CASE("workers of a job run scheduled functions, which use its parameter servers (spec J12, L01)") {
  const ClusterSpec cluster = dist_test::cluster_of(1);
  CHECK(!dist::serve<Local>(SimpleResolver{cluster, Task{TaskType::chief, 0}}));
  std::vector<std::future<bool>> served;
  for (const Task task : {ps_0, worker_0})
    served.push_back(std::async(std::launch::async, [=] { return dist::serve<Local>(SimpleResolver{cluster, task}); }));
  {
    const Session session{dist_test::served(cluster)};
    Client client{0, server_address};
    client.create({shard, "w", 1, 1, 0}, 1.5f);
    dist::ClusterCoordinator coordinator{dist::WorkerList<Local>{{worker_address}, {}, {server_address}}};
    CHECK(coordinator.schedule(step, 1.f).fetch() == 2.5f);
    CHECK(coordinator.schedule(step, 2.f).fetch() == 4.5f);
    CHECK_NOTHROW(coordinator.join());
  }
  for (std::future<bool>& process : served) CHECK(process.get());
}

TEST_CASE("a worker's functions call parameter servers with the worker's secret") {
  const ClusterSpec cluster = dist_test::cluster_of(1);
  const std::string secret = "kestrel 42";
  std::vector<std::future<bool>> served;
  for (const Task task : {ps_0, worker_0})
    served.push_back(std::async(std::launch::async, [&cluster, &secret, task] {
      dist::server::ServeOptions options;
      options.server.secret = secret;
      return dist::serve<Local>(SimpleResolver{cluster, task}, options);
    }));
  {
    const Session session{dist_test::served(cluster), {{.channel = {.secret = secret}}}};
    dist::ClusterCoordinator coordinator{
        dist::WorkerList<Local>{{worker_address}, {.secret = secret}, {server_address}}};
    const auto greet = [](WorkerContext& worker) { return worker.clients<Local>().of(0, 0)->incarnation(); };
    CHECK(coordinator.schedule(greet).fetch(20s) == session.incarnation(ps_0));
  }
  for (std::future<bool>& process : served) CHECK(process.get());
}

TEST_CASE("a parameter server that workers find unavailable is lost, with its index (spec L15)") {
  dist_test::LocalWorkers<Local> workers(1);
  dist::ClusterCoordinator coordinator{workers.list({server_address})};
  coordinator.schedule(step, 1.f);
  const auto error = dist_test::error_of<dist::ServerUnavailable>([&] { coordinator.join(20s); });
  REQUIRE(error);
  CHECK(error->rank() == 0);
  CHECK(error->host() == to_string(server_address));
  CHECK(error->why().find("functions found it lost 3 times, most recently on worker 0: Parameter server 0 at ps0:1 is "
                          "unavailable (no server of this process listens there, 3 times)") == 0);
  CHECK(coordinator.metrics().put_back == 2);
}
