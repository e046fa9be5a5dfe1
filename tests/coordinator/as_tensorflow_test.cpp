// Compares the outcomes of calls with TensorFlow's (tensorflow/make_fixtures.py). Workers and parameter servers are
// processes, some of which are killed.
#include <dist/strategy/parameter_server.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/serve.hpp>
#include <dist/data/range.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/variable/partitioner.hpp>

#include <doctest/doctest.h>

#include "coordinator/local_workers.hpp"
#include "coordinator/tensorflow/coordinator.hpp"
#include "net/ports.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/soon.hpp"
#include "support/spawned.hpp"

namespace {

using namespace std::chrono_literals;
using dist::ClusterSpec;
using dist::Grpc;
using dist::Shape;
using dist::SimpleResolver;
using dist::Task;
using dist::TaskType;
using dist::WorkerContext;
using support::soon;
using tensorflow_coordinator::Outcome;

constexpr std::size_t num_servers = 2, num_workers = 2;

/// Reads `ports`, with a space after each: first the servers' ports, then the workers'.
ClusterSpec cluster_at(std::string ports) {
  ClusterSpec cluster;
  for (std::size_t task = 0; task < num_servers + num_workers; ++task) {
    const std::size_t end = ports.find(' ');
    cluster.append(task < num_servers ? TaskType::parameter_server : TaskType::worker,
                   {"127.0.0.1:" + ports.substr(0, end)});
    ports.erase(0, end + 1);
  }
  return cluster;
}
std::string free_ports() {
  std::string ports;
  for (const auto& endpoint : dist_test::free_endpoints(num_servers + num_workers)) ports += endpoint.port + " ";
  return ports;
}

/// A cluster whose processes can be killed and restarted, and their coordinator.
class Job {
 public:
  Job() : ports_(free_ports()) {
    const ClusterSpec cluster = cluster_at(ports_);
    for (const Task task : cluster.tasks()) start(task);
    strategy_.emplace(SimpleResolver{cluster, Task{TaskType::chief, 0}},
                      dist::ParameterServerOptions{.partitioner = dist::FixedShards{2}});
    coordinator_.emplace(*strategy_);
  }
  void start(Task task) {
    processes_[to_string(task)] = std::make_unique<support::Spawned>(
        "a task of the suite",
        std::vector{"DIST_TEST_PORTS=" + ports_,
                    "DIST_TEST_SERVER=" + std::to_string(task.type == TaskType::parameter_server),
                    "DIST_TEST_TASK=" + std::to_string(task.index)});
  }
  void kill(Task task) { processes_[to_string(task)]->kill(); }

  [[nodiscard]] auto& strategy() { return *strategy_; }
  [[nodiscard]] auto& coordinator() { return *coordinator_; }

 private:
  const std::string ports_;
  std::map<std::string, std::unique_ptr<support::Spawned>> processes_;
  std::optional<dist::ParameterServer<Grpc>> strategy_;
  std::optional<dist::ClusterCoordinator<dist::ParameterServer<Grpc>>> coordinator_;
};

/// Compares outcomes with TensorFlow's, in the same order.
class Outcomes {
 public:
  explicit Outcomes(std::span<const Outcome> expected) : expected_(expected) {}
  Outcomes(const Outcomes&) = delete;
  Outcomes& operator=(const Outcomes&) = delete;
  ~Outcomes() { CHECK(seen_ == expected_.size()); }

  void is(const std::string& what, const std::string& result) {
    REQUIRE(seen_ < expected_.size());
    CAPTURE(what);
    CHECK(what == expected_[seen_].what);
    CHECK(result == expected_[seen_].result);
    ++seen_;
  }
  template <class Call>
  void of(const std::string& what, Call&& call) {
    std::string result = "nothing";
    try {
      call();
    } catch (const dist::Cancelled&) {
      result = "cancelled";
    } catch (const dist::ServerUnavailable&) {
      result = "unavailable";
    } catch (const dist::RemoteError&) {
      result = "the function's error";
    }
    is(what, result);
  }

 private:
  std::span<const Outcome> expected_;
  std::size_t seen_ = 0;
};

constexpr auto fail = [](WorkerContext&) -> int { throw std::invalid_argument("no number"); };
constexpr auto succeed = [](WorkerContext&) { return 1; };
constexpr auto work = [](WorkerContext&, int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
  return milliseconds;
};

}  // namespace

TEST_CASE("a task of the suite" * doctest::skip()) {
  const bool is_server = std::getenv("DIST_TEST_SERVER") == std::string{"1"};
  const Task task{is_server ? TaskType::parameter_server : TaskType::worker,
                  static_cast<std::size_t>(std::atoi(std::getenv("DIST_TEST_TASK")))};
  static_cast<void>(
      dist::serve<Grpc>(SimpleResolver{cluster_at(std::getenv("DIST_TEST_PORTS")), task}, {.keep_alive = 2s}));
}

TEST_CASE("shards are placed on the same servers as in TensorFlow (spec J04, J05, J06)") {
  Job job;
  for (std::size_t i = 0; i < std::size(tensorflow_coordinator::shapes); ++i) {
    const auto variable = job.strategy().variable<float>(tensorflow_coordinator::shapes[i], 0.0F);
    const auto& expected = tensorflow_coordinator::shards[i];
    REQUIRE(variable.shards().size() == expected.size());
    for (std::size_t shard = 0; shard < expected.size(); ++shard) {
      const Shape& shape = variable.shards()[shard].shape();
      CHECK((shape.rank() == 0 ? 1 : shape[0]) == expected[shard].rows);
      CHECK(variable.shards()[shard].place().server == expected[shard].server);
    }
  }
}

TEST_CASE("errors of functions are thrown where TensorFlow throws them (spec L04, L05, L06, L08)") {
  Job job;
  auto& coordinator = job.coordinator();
  Outcomes outcome{tensorflow_coordinator::errors};
  const auto settle = [&] {
    REQUIRE(soon([&] { return coordinator.metrics().waiting + coordinator.metrics().in_flight == 0; }));
  };
  static_cast<void>(coordinator.schedule(succeed).fetch());
  const auto failed = coordinator.schedule(fail);
  settle();
  outcome.of("fetch of what failed", [&] { static_cast<void>(failed.fetch()); });
  outcome.of("join after an error", [&] { coordinator.join(); });
  outcome.of("join again", [&] { coordinator.join(); });
  coordinator.schedule(fail);
  settle();
  outcome.of("schedule after an error", [&] { coordinator.schedule(succeed); });
  const auto value = coordinator.schedule(succeed);
  outcome.of("join after schedule has thrown", [&] { coordinator.join(); });
  outcome.of("fetch of what was scheduled then", [&] { static_cast<void>(value.fetch()); });
  coordinator.schedule(fail);
  settle();
  outcome.of("done after an error", [&] { static_cast<void>(coordinator.done()); });
  outcome.of("done again", [&] { static_cast<void>(coordinator.done()); });
  std::vector<dist::RemoteValue<int>> values, waiting;
  for (int i = 0; i < 4; ++i) values.push_back(coordinator.schedule(work, 50));
  coordinator.schedule(fail);
  for (int i = 0; i < 20; ++i) waiting.push_back(coordinator.schedule(work, 50));
  outcome.of("join with functions that wait behind one that fails", [&] { coordinator.join(); });
  outcome.of("fetch of one that ran before", [&] { static_cast<void>(values.front().fetch()); });
  outcome.of("fetch of the last that waited", [&] { static_cast<void>(waiting.back().fetch()); });
}

TEST_CASE("functions, datasets and variables of killed processes behave as in TensorFlow (spec L02, L09, L14, L15)") {
  Job job;
  auto& coordinator = job.coordinator();
  Outcomes outcome{tensorflow_coordinator::losses};
  auto begun = job.strategy().variable<std::int64_t>({}, 0, "begun");
  const auto read = [&] { return begun.read(job.strategy().scope())[0]; };
  const auto numbers = coordinator.create_per_worker_dataset(
      [](const dist::InputContext&) { return dist::data::range(std::int64_t{0}, 1000); });
  const auto step = [](WorkerContext& worker, auto& its_begun, auto& dataset) {
    its_begun.assign_add(worker, 1);
    const std::int64_t number = dataset.next();
    std::this_thread::sleep_for(500ms);
    return number;
  };
  const auto take = [](WorkerContext&, auto& dataset) { return dataset.next(); };
  const auto count = [](WorkerContext& worker, auto& its_begun) { its_begun.assign_add(worker, 1); };

  std::vector<dist::RemoteValue<std::int64_t>> values;
  for (int i = 0; i < 2; ++i) values.push_back(coordinator.schedule(step, begun, numbers));
  REQUIRE(soon([&] { return read() == 2; }));
  constexpr Task worker_1{TaskType::worker, 1};
  job.kill(worker_1);
  outcome.of("join where a worker was killed", [&] { coordinator.join(); });
  outcome.is("how often two functions began", std::to_string(read()));
  std::vector<std::int64_t> found{values[0].fetch(), values[1].fetch()};
  std::sort(found.begin(), found.end());
  outcome.is("their numbers, in order", std::to_string(found[0]) + " " + std::to_string(found[1]));
  job.start(worker_1);
  outcome.is("the first number of a dataset comes again where its worker was killed",
             coordinator.schedule_on(1, take, numbers).fetch() == 0 ? "yes" : "no");
  job.kill({TaskType::parameter_server, begun.shards()[0].place().server});
  outcome.of("join where a parameter server was killed", [&] {
    coordinator.schedule(count, begun);
    coordinator.join();
  });
}
