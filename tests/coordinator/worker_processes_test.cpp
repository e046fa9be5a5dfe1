// Workers as processes, which are killed, stopped and restarted.
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/worker_service.hpp>
#include <dist/rpc/grpc/transport.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/data/range.hpp>

#include <doctest/doctest.h>

#include "coordinator/local_workers.hpp"
#include "net/ports.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/sanitizers.hpp"
#include "support/soon.hpp"
#include "support/spawned.hpp"

namespace {

using namespace std::chrono_literals;
using dist::ClusterCoordinator;
using dist::CoordinatorOptions;
using dist::Grpc;
using dist::InputContext;
using dist::RemoteValue;
using dist::WorkerContext;
using dist_test::error_of;
using support::soon;
using Clock = std::chrono::steady_clock;

#ifdef DIST_TEST_SANITIZER
constexpr auto silence = 3s;
#else
constexpr auto silence = 1s;
#endif
const char* const secret = "of the job";

/// The service of this process if it is a worker, and the numbers of its functions that run, got a stop request, and
/// have finished.
const dist::WorkerService<Grpc>* own_service = nullptr;
std::atomic<int> running{0}, stopped{0}, finished{0};

class Workers {
 public:
  explicit Workers(std::size_t count) : endpoints(dist_test::free_endpoints(count)), processes(count) {
    for (std::size_t worker = 0; worker < count; ++worker) start(worker);
  }
  void start(std::size_t worker) {
    processes[worker] = std::make_unique<support::Spawned>(
        "a worker of the suite",
        std::vector{"DIST_TEST_PORT=" + endpoints[worker].port, "DIST_TEST_PARENT=" + std::to_string(getpid())});
  }
  [[nodiscard]] dist::WorkerList<Grpc> list() const {
    return dist::WorkerList<Grpc>{endpoints, {.secret = secret, .silence = silence}};
  }

  const std::vector<dist::net::Endpoint> endpoints;
  std::vector<std::unique_ptr<support::Spawned>> processes;
};

/// Returns the index of a worker that runs a function.
template <class Coordinator>
std::size_t busy_worker(const Coordinator& coordinator, std::size_t workers) {
  std::size_t busy = workers;
  REQUIRE(soon([&] {
    const std::string words = coordinator.describe();
    for (std::size_t worker = 0; worker < workers; ++worker) {
      const std::size_t at = words.find("worker " + std::to_string(worker) + " at ");
      if (words.find(" has run ", at) < words.find(';', at)) busy = worker;
    }
    return busy < workers;
  }));
  return busy;
}

/// Runs for a while, or until a stop request. Returns the worker's index and the start time.
constexpr auto take_a_while = [](WorkerContext& worker, int milliseconds) {
  const auto begin = Clock::now();
  ++running;
  bool asked = false;
  // Counts sleeps instead of reading a clock, so that time during which the process is stopped does not count.
  for (int i = 0; i < milliseconds && !asked; ++i) {
    std::this_thread::sleep_for(1ms);
    asked = worker.stop_requested();
  }
  ++(asked ? stopped : finished);
  --running;
  return std::pair{worker.index(), begin.time_since_epoch().count()};
};
constexpr auto index = [](WorkerContext& worker) { return worker.index(); };
constexpr auto functions_running = [](WorkerContext&) { return running.load(); };
constexpr auto functions_finished = [](WorkerContext&) { return finished.load(); };
constexpr auto functions_stopped = [](WorkerContext&) { return stopped.load(); };

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

}  // namespace

TEST_CASE("a worker of the suite" * doctest::skip()) {
  const std::string parent = std::getenv("DIST_TEST_PARENT");
  dist::WorkerService<Grpc> service;
  own_service = &service;
  const Grpc::Server server{{"127.0.0.1", std::getenv("DIST_TEST_PORT")},
                            {.threads = 4, .secret = secret, .silence = silence},
                            service.methods()};
  while (std::to_string(getppid()) == parent) std::this_thread::sleep_for(50ms);
}

TEST_CASE("a coordinator of the suite" * doctest::skip()) {
  ClusterCoordinator coordinator{
      dist::WorkerList<Grpc>{{{"127.0.0.1", std::getenv("DIST_TEST_PORT")}}, {.secret = secret, .silence = silence}}};
  coordinator.schedule(take_a_while, 60'000);
  coordinator.join();
}

TEST_CASE("functions run in other processes, with exceptions and per-worker datasets (spec L01, L09)") {
  Workers workers(2);
  ClusterCoordinator coordinator{workers.list()};
  const auto numbers = coordinator.create_per_worker_dataset([](const InputContext& input) {
    return dist::data::range(static_cast<std::int64_t>(input.input_pipeline_id()) * 100, 1000);
  });
  const auto step = [](WorkerContext&, auto& dataset) { return std::pair{getpid(), dataset.next()}; };
  std::set<pid_t> processes{getpid()};
  for (std::size_t worker = 0; worker < 2; ++worker)
    for (std::int64_t i = 0; i < 3; ++i) {
      const auto [process, number] = coordinator.schedule_on(worker, step, numbers).fetch();
      processes.insert(process);
      CHECK(number == static_cast<std::int64_t>(worker) * 100 + i);
    }
  CHECK(processes.size() == 3);
  coordinator.schedule([](WorkerContext&, int x) { throw std::out_of_range("bad " + std::to_string(x)); }, 7);
  const auto error = error_of<dist::RemoteError>([&] { coordinator.join(); });
  REQUIRE(error);
  CHECK(error->thrown() == "std::out_of_range");
  CHECK(error->why() == "bad 7");
  const std::vector<float> large(3'000'000, 0.5f);
  const auto copy = coordinator.schedule([](WorkerContext&, std::vector<float>& values) { return values; }, large);
  CHECK(copy.fetch() == large);
}

TEST_CASE("functions of a killed worker run elsewhere at once, and the worker may return (spec L14)") {
  Workers workers(2);
  ClusterCoordinator coordinator{workers.list()};
  const auto numbers =
      coordinator.create_per_worker_dataset([](const InputContext&) { return dist::data::range(0, 100); });
  const auto next = [](WorkerContext&, auto& dataset) { return dataset.next(); };
  for (std::size_t worker = 0; worker < 2; ++worker) CHECK(coordinator.schedule_on(worker, next, numbers).fetch() == 0);
  const auto value = coordinator.schedule(take_a_while, 300);
  const std::size_t killed = busy_worker(coordinator, 2);
  const auto kill_time = Clock::now();
  workers.processes[killed]->kill();
  const auto [ran_on, began] = value.fetch();
  CHECK(ran_on == 1 - killed);
  const auto took = Clock::time_point{Clock::duration{began}} - kill_time;
  MESSAGE("the function runs elsewhere " << milliseconds(took) << " ms after the kill");
  CHECK(took > 0s);
  CHECK(coordinator.schedule_on(1 - killed, next, numbers).fetch() == 1);
  coordinator.join();
  CHECK(coordinator.metrics().lost == 1);
  CHECK(coordinator.metrics().connected == 1);

  const auto restart_time = Clock::now();
  workers.start(killed);
  CHECK(coordinator.schedule_on(killed, next, numbers).fetch() == 0);  // its dataset restarts
  MESSAGE("the worker is back " << milliseconds(Clock::now() - restart_time) << " ms after its start");
  CHECK(coordinator.metrics().recovery.count == 1);
  CHECK(coordinator.metrics().connected == 2);
}

TEST_CASE("repeatedly killed workers lose no function (spec L02)") {
  Workers workers(2);
  ClusterCoordinator coordinator{workers.list()};
  const auto square = [](WorkerContext&, int x) {
    std::this_thread::sleep_for(1ms);
    return x * x;
  };
  std::vector<RemoteValue<int>> values;
  for (int i = 0; i < 600; ++i) values.push_back(coordinator.schedule(square, i));
  for (std::size_t kill = 0; kill < 3; ++kill) {
    const std::uint64_t before = coordinator.metrics().finished;
    REQUIRE(soon([&] { return coordinator.metrics().finished > before + 30; }));
    workers.processes[kill % 2]->kill();
    workers.start(kill % 2);
  }
  CHECK_NOTHROW(coordinator.join(60s));
  for (int i = 0; i < 600; ++i) CHECK(values[static_cast<std::size_t>(i)].fetch() == i * i);
  const dist::CoordinatorMetrics metrics = coordinator.metrics();
  MESSAGE(metrics.lost << " losses, " << metrics.put_back << " functions put back");
  CHECK(metrics.finished == 600);
  CHECK(metrics.lost >= 1);
}

namespace {

/// A worker that is killed or stopped while it is idle, while functions for it alone are queued, or while it runs a
/// function for any worker. Another worker takes over where possible.
struct Loss {
  enum Moment { idle, queued, in_flight };

  Loss(Moment when, int how) : moment(when), signal(how) {}

  void begin() {
    REQUIRE(soon([&] { return coordinator.metrics().connected == 2; }));
    if (moment == queued) {
      interrupted = coordinator.schedule_on(victim, take_a_while, 300);
      waiting = coordinator.schedule_on(victim, index);
      REQUIRE(busy_worker(coordinator, 2) == victim);
    } else if (moment == in_flight) {
      interrupted = coordinator.schedule(take_a_while, 300);
      victim = busy_worker(coordinator, 2);
    }
    since = Clock::now();
    if (signal == SIGKILL)
      workers.processes[victim]->kill();
    else
      workers.processes[victim]->signal(signal);
  }
  /// Polled by the test. True once the coordinator has noticed the loss.
  [[nodiscard]] bool is_noticed() {
    if (!noticed && coordinator.metrics().lost == 1) noticed = Clock::now() - since;
    return noticed.has_value();
  }
  void end() {
    const std::size_t other = 1 - victim;
    CHECK(coordinator.schedule_on(other, index).fetch(10s) == other);
    if (moment == in_flight) {
      const auto [worker, began] = interrupted.fetch(10s);
      CHECK(worker == other);
      CHECK(Clock::time_point{Clock::duration{began}} > since);
    }
    if (moment == queued) CHECK(waiting.state() == dist::RemoteState::not_ready);

    const auto revived = Clock::now();
    if (signal == SIGKILL)
      workers.start(victim);
    else
      workers.processes[victim]->signal(SIGCONT);
    CHECK(coordinator.schedule_on(victim, index).fetch(30s) == victim);
    MESSAGE(name() << ": noticed after " << milliseconds(*noticed) << " ms, back after "
                   << milliseconds(Clock::now() - revived) << " ms");
    if (moment == queued) {
      CHECK(interrupted.fetch(10s).first == victim);
      CHECK(waiting.fetch(10s) == victim);
    }
    // The function on the stopped worker gets a stop request, because its result is not needed any more.
    CHECK(soon([&] { return coordinator.schedule_on(victim, functions_running).fetch(10s) == 0; }));
    CHECK(coordinator.schedule_on(victim, functions_finished).fetch(10s) == (moment == queued ? 1 : 0));
    CHECK_NOTHROW(coordinator.join(10s));
    CHECK(coordinator.metrics().connected == 2);
  }

  [[nodiscard]] std::string name() const {
    const std::string moments[] = {"idle", "queued", "in flight"};
    return moments[moment] + (signal == SIGKILL ? ", killed" : ", stopped");
  }

  Moment moment;
  int signal;
  Workers workers{2};
  ClusterCoordinator<dist::WorkerList<Grpc>> coordinator{workers.list()};
  std::size_t victim = 0;
  RemoteValue<std::pair<std::size_t, Clock::rep>> interrupted;
  RemoteValue<std::size_t> waiting;
  Clock::time_point since;
  std::optional<Clock::duration> noticed;
};

}  // namespace

TEST_CASE("a killed or stopped worker is noticed in any state, and loses no function (spec L02, L14)") {
  std::vector<std::unique_ptr<Loss>> losses;
  for (const int signal : {SIGKILL, SIGSTOP})
    for (const Loss::Moment moment : {Loss::idle, Loss::queued, Loss::in_flight})
      losses.push_back(std::make_unique<Loss>(moment, signal));
  for (const auto& loss : losses) loss->begin();
  CHECK(soon([&] {
    std::size_t noticed = 0;
    for (const auto& loss : losses) noticed += loss->is_noticed();
    return noticed == losses.size();
  }));
  for (const auto& loss : losses) {
    REQUIRE(loss->noticed);
    loss->end();
  }
}

TEST_CASE("workers end the sessions and functions of a killed or stopped coordinator (spec L22)") {
  Workers workers(1);
  ClusterCoordinator looks{workers.list()};
  const auto sessions = [](WorkerContext&) { return own_service->sessions(); };
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const int stopped_before = looks.schedule(functions_stopped).fetch(10s);
    support::Spawned coordinator{"a coordinator of the suite", {"DIST_TEST_PORT=" + workers.endpoints[0].port}};
    REQUIRE(soon([&] { return looks.schedule(functions_running).fetch(10s) == 1; }));
    CHECK(looks.schedule(sessions).fetch(10s) == 2);
    const auto begin = Clock::now();
    coordinator.signal(signal);
    CHECK(soon([&] { return looks.schedule(sessions).fetch(10s) == 1; }));
    const auto took = Clock::now() - begin;
    MESSAGE(std::string(signal == SIGKILL ? "killed" : "stopped")
            << ": the session has ended after " << milliseconds(took) << " ms");
    CHECK(soon([&] { return looks.schedule(functions_stopped).fetch(10s) == stopped_before + 1; }));
  }
}

TEST_CASE("a coordinator without the secret of the job is rejected by its workers") {
  Workers workers(1);
  ClusterCoordinator coordinator{dist::WorkerList<Grpc>{workers.endpoints, {.secret = "another", .silence = silence}}};
  const auto error = error_of<dist::RpcError>([&] {
    coordinator.schedule(take_a_while, 0);
    coordinator.join(30s);
  });
  REQUIRE(error);
  CHECK(error->failure() == dist::rpc::Failure::refused);
}

TEST_CASE("the destructor of a coordinator does not wait for lost, stopped or busy workers") {
  Workers workers(3);
  RemoteValue<std::pair<std::size_t, Clock::rep>> busy;
  std::optional<ClusterCoordinator<dist::WorkerList<Grpc>>> coordinator;
  coordinator.emplace(workers.list());
  REQUIRE(soon([&] { return coordinator->metrics().connected == 3; }));
  for (std::size_t worker = 1; worker < 3; ++worker) coordinator->schedule_on(worker, take_a_while, 60'000);
  busy = coordinator->schedule_on(0, take_a_while, 60'000);
  REQUIRE(soon([&] { return coordinator->metrics().in_flight == 3; }));
  workers.processes[1]->kill();
  workers.processes[2]->signal(SIGSTOP);
  const auto begin = Clock::now();
  coordinator.reset();
  MESSAGE("the coordinator ended in " << milliseconds(Clock::now() - begin) << " ms");
  CHECK(Clock::now() - begin < 50s);  // functions take 60 s
  CHECK(busy.state() == dist::RemoteState::aborted);
}
