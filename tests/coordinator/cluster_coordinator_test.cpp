#include <dist/coordinator/cluster_coordinator.hpp>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/data/range.hpp>
#include <dist/rpc/local_transport.hpp>

#include <doctest/doctest.h>

#include "coordinator/flaky_transport.hpp"
#include "coordinator/local_workers.hpp"
#include "support/allocations.hpp"
#include "support/exception_suppressions.hpp"
#include "support/soon.hpp"
#include "support/stderr_of.hpp"
#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::ClusterCoordinator;
using dist::CoordinatorOptions;
using dist::InputContext;
using dist::Local;
using dist::PerWorker;
using dist::RemoteState;
using dist::RemoteValue;
using dist::WorkerContext;
using dist_test::error_of;
using dist_test::Flaky;
using dist_test::LocalWorkers;
using support::soon;
using support::what_throws;

/// State shared by the test and its functions on workers, which cannot have captures.
std::atomic<int> running{0}, ran{0}, made{0};
std::atomic<bool> gate{false};

void reset() {
  running = ran = made = 0;
  gate = false;
}
/// Functions that wait for the gate, or for a stop request.
void wait_for_gate(WorkerContext& worker) {
  ++running;
  while (!gate && !worker.stop_requested()) std::this_thread::sleep_for(1ms);
  --running;
}
void wait_for_gate_alone(WorkerContext&) {
  ++running;
  while (!gate) std::this_thread::sleep_for(1ms);
  --running;
}
int twice(WorkerContext&, int x) {
  ++ran;
  return 2 * x;
}
struct Plus {
  int summand;
  std::string name;

  std::string operator()(WorkerContext&, int x) const { return name + std::to_string(x + summand); }
};

template <class Transport>
struct Cluster {
  explicit Cluster(std::size_t count, const CoordinatorOptions& options = {},
                   std::vector<dist::net::Endpoint> servers = {})
      : workers(count), coordinator(workers.list(std::move(servers)), options) {
    reset();
  }
  ~Cluster() { gate = true; }
  /// True once all workers have sessions.
  [[nodiscard]] bool connected() {
    return soon([&] { return coordinator.metrics().connected == coordinator.num_workers(); });
  }

  LocalWorkers<Transport> workers;
  ClusterCoordinator<dist::WorkerList<Transport>> coordinator;
};

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks{"/proc/self/task"};
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}
std::size_t descriptors_of_this_process() {
  const std::filesystem::directory_iterator descriptors{"/proc/self/fd"};
  return static_cast<std::size_t>(std::distance(begin(descriptors), end(descriptors)));
}

}  // namespace

TEST_CASE("functions run on workers and return their results (spec L01, L02, L07)") {
  Cluster<Local> cluster(2);
  auto& coordinator = cluster.coordinator;
  CHECK_NOTHROW(coordinator.join());
  CHECK(coordinator.done());
  const auto doubled = coordinator.schedule(dist::function<twice>, 21);
  const auto plain = coordinator.schedule(Plus{1, "x"}, 4);
  const auto lambda = coordinator.schedule(
      [](WorkerContext&, const std::vector<float>& v, const std::string& name, std::tuple<int, bool> both) {
        return std::pair{v.at(1) + static_cast<float>(std::get<0>(both)), name};
      },
      std::vector{1.f, 2.f}, std::string("text"), std::tuple{3, true});
  dist::Tensor<float> tensor{dist::Shape{2, 2}};
  tensor.data()[3] = 0.5f;
  const auto moved = coordinator.schedule([](WorkerContext&, dist::Tensor<float>& t) { return std::move(t); }, tensor);
  const RemoteValue<void> nothing = coordinator.schedule([](WorkerContext&) {});
  coordinator.join();
  CHECK(coordinator.done());
  CHECK(doubled.fetch() == 42);
  CHECK(coordinator.fetch(std::tuple{doubled, std::vector{plain}, 5}) ==
        std::tuple{42, std::vector{std::string("x5")}, 5});
  CHECK(lambda.fetch() == std::pair{5.f, std::string("text")});
  CHECK(moved.fetch().data()[3] == 0.5f);
  CHECK_NOTHROW(nothing.fetch());
  CHECK(what_throws([] { ClusterCoordinator{dist::WorkerList<Local>{{}}}; }) ==
        "A coordinator has no workers (the list of workers is empty). List at least one worker.");
}

TEST_CASE("schedule does not wait for workers unless the queue is full (spec L02)") {
  Cluster<Local> cluster(1, {.queue_capacity = 3, .schedule_timeout = 50ms});
  auto& coordinator = cluster.coordinator;
  const auto first = coordinator.schedule(dist::function<wait_for_gate>);
  REQUIRE(soon([] { return running == 1; }));
  std::vector<RemoteValue<int>> values;
  for (int i = 0; i < 3; ++i) values.push_back(coordinator.schedule(dist::function<twice>, i));
  CHECK(first.state() == RemoteState::not_ready);
  CHECK(what_throws<dist::DeadlineExceeded>([&] { coordinator.schedule(dist::function<twice>, 9); }) ==
        "A function was not scheduled in time (3 others wait for a worker, and 1 run). Call join more often, add "
        "workers, or wait longer.");
  CHECK_FALSE(coordinator.done());
  CHECK_THROWS_AS(coordinator.join(5ms), dist::DeadlineExceeded);
  gate = true;
  coordinator.join();
  CHECK(coordinator.fetch(values) == std::vector{0, 2, 4});
}

TEST_CASE(
    "the first error of a function is thrown once, with type and text, and the coordinator continues (spec L05, L18)") {
  for (const std::string from : {"join", "done", "schedule"}) {
    CAPTURE(from);
    Cluster<Local> cluster(2);
    auto& coordinator = cluster.coordinator;
    REQUIRE(cluster.connected());
    const auto busy = coordinator.schedule_on(0, dist::function<wait_for_gate_alone>);
    REQUIRE(soon([] { return running == 1; }));
    const auto waits = coordinator.schedule_on(0, dist::function<twice>, 1);
    // Its text equals the text of a lost worker, but it is not treated as one (spec L13).
    const auto bad = coordinator.schedule(
        [](WorkerContext&, int x) -> int { throw std::out_of_range("UNAVAILABLE: /job:worker " + std::to_string(x)); },
        7);
    REQUIRE(soon([&] { return bad.state() == RemoteState::failed; }));
    CHECK(soon([&] { return waits.state() == RemoteState::cancelled; }));
    std::thread opener([] {
      std::this_thread::sleep_for(20ms);
      gate = true;
    });
    const auto error = error_of<dist::RemoteError>([&] {
      if (from == "join") coordinator.join();
      if (from == "done") static_cast<void>(coordinator.done());
      if (from == "schedule") coordinator.schedule(dist::function<twice>, 1);
    });
    CHECK(running == 0);  // it has waited
    opener.join();
    REQUIRE(error);
    CHECK(error->worker() == 1);
    CHECK(error->thrown() == "std::out_of_range");
    CHECK(error->why() == "UNAVAILABLE: /job:worker 7");
    CHECK_NOTHROW(busy.fetch());
    CHECK_THROWS_AS(bad.fetch(), dist::RemoteError);
    CHECK(what_throws<dist::Cancelled>([&] { waits.fetch(); }) ==
          "A scheduled function was cancelled (another one failed before it ran). Schedule the function again if its "
          "result "
          "is wanted.");
    CHECK(ran == 0);
    CHECK(coordinator.done());
    CHECK(coordinator.schedule(dist::function<twice>, 4).fetch() == 8);
    CHECK_NOTHROW(coordinator.join());
    CHECK(coordinator.metrics().lost == 0);
  }
}

TEST_CASE("an error sends stop requests to running functions, which are cancelled if they stop (spec L05)") {
  Cluster<Local> cluster(3);
  auto& coordinator = cluster.coordinator;
  REQUIRE(cluster.connected());
  std::vector<RemoteValue<void>> running_ones;
  for (const std::size_t worker : {0U, 1U})
    running_ones.push_back(coordinator.schedule_on(worker, dist::function<wait_for_gate>));
  REQUIRE(soon([] { return running == 2; }));
  coordinator.schedule([](WorkerContext&) { throw std::out_of_range("bad"); });
  CHECK_THROWS_AS(coordinator.join(60s), dist::RemoteError);  // the gate stays closed
  CHECK(running == 0);
  for (const auto& value : running_ones) {
    CHECK(value.state() == RemoteState::cancelled);
    CHECK(what_throws<dist::Cancelled>([&] { value.fetch(); }) ==
          "A scheduled function was cancelled (another one failed while it ran). Schedule the function again if its "
          "result is wanted.");
  }
  CHECK(coordinator.metrics().cancelled == 2);
  CHECK(coordinator.metrics().lost == 0);
  // Functions scheduled afterwards get no stop request.
  const auto later = coordinator.schedule_on(0, dist::function<wait_for_gate>);
  REQUIRE(soon([] { return running == 1; }));
  gate = true;
  CHECK_NOTHROW(later.fetch());
  CHECK_NOTHROW(coordinator.join(60s));
}

TEST_CASE("an error outside functions stops running functions, too") {
  Cluster<Local> cluster(1);
  const auto runs = cluster.coordinator.schedule(dist::function<wait_for_gate>);
  REQUIRE(soon([] { return running == 1; }));
  cluster.coordinator.report(std::make_exception_ptr(dist::ServerUnavailable(2, "a:1", "is gone", "gone", "Go")));
  CHECK_THROWS_AS(cluster.coordinator.join(60s), dist::ServerUnavailable);
  CHECK_THROWS_AS(runs.fetch(), dist::Cancelled);
}

TEST_CASE("join reports what it waits for, if no function finishes and on request") {
  const testing::Ending ending = testing::stderr_of([] {
    Cluster<Local> cluster(1, {.patience = 200ms});
    auto& coordinator = cluster.coordinator;
    coordinator.schedule(dist::function<wait_for_gate_alone>);
    std::thread asks([] {
      std::this_thread::sleep_for(1s);
      raise(SIGUSR1);
      gate = true;
    });
    coordinator.join();
    asks.join();
  });
  CAPTURE(ending.stderr_text);
  CHECK_FALSE(ending.aborted);
  CHECK(ending.says("dist: join waits, and no function has ended for 0.2 s: 0 functions wait; worker 0 at here:"));
  CHECK(ending.says(" waits in join: 0 functions wait; worker 0 at here:"));
}

TEST_CASE("exceptions of other types than std::exception are returned, and errors of dist with their full text") {
  Cluster<Local> cluster(1);
  auto& coordinator = cluster.coordinator;
  coordinator.schedule([](WorkerContext&) { throw 7; });
  CHECK(error_of<dist::RemoteError>([&] { coordinator.join(); })->thrown() == "int");
  coordinator.schedule([](WorkerContext&) { throw dist::ShapeMismatch("A", "b", "C"); });
  const auto error = error_of<dist::RemoteError>([&] { coordinator.join(); });
  CHECK(error->thrown() == "dist::ShapeMismatch");
  CHECK(error->why() == "A (b). C.");
}

TEST_CASE("a result outlives its worker and its coordinator (spec L08)") {
  RemoteValue<std::string> value;
  {
    Cluster<Local> cluster(1);
    value = cluster.coordinator.schedule(Plus{1, "x"}, 1);
    cluster.coordinator.join();
    cluster.workers.stop(0);
    CHECK(value.fetch() == "x2");
  }
  CHECK(value.fetch() == "x2");
}

TEST_CASE("each worker has its own dataset, which continues from function to function (spec L03, L09, L11)") {
  Cluster<Local> cluster(3);
  auto& coordinator = cluster.coordinator;
  const auto numbers = coordinator.create_per_worker_dataset(
      [](const InputContext& input, std::int64_t factor) {
        ++made;
        CHECK(input.num_input_pipelines() == 3);
        CHECK(input.num_replicas_in_sync() == 1);
        const auto worker = static_cast<std::int64_t>(input.input_pipeline_id());
        return dist::data::range(factor * worker, factor * worker + 3);
      },
      std::int64_t{10});
  const auto next = [](WorkerContext& worker, auto& iterator) {
    return std::tuple{worker.index(), worker.num_workers(), iterator.next()};
  };
  for (std::int64_t step = 0; step < 3; ++step)
    for (std::size_t worker = 0; worker < 3; ++worker)
      CHECK(coordinator.schedule_on(worker, next, numbers).fetch() ==
            std::tuple{worker, std::size_t{3}, 10 * static_cast<std::int64_t>(worker) + step});
  CHECK(made == 3);
  coordinator.join();
  coordinator.schedule_on(1, next, numbers);
  const auto error = error_of<dist::RemoteError>([&] { coordinator.join(); });
  REQUIRE(error);
  CHECK(error->thrown() == "dist::OutOfData");
  // Inside a structure, it is a handle, for which the worker has the object.
  const auto inside = coordinator.schedule_on(
      2,
      [](WorkerContext& worker, auto& both) {
        auto& iterator = worker.get(both.second);
        iterator.restart();
        return iterator.next() + both.first;
      },
      std::pair{100, numbers});
  CHECK(inside.fetch() == 120);
}

TEST_CASE("an error of a resource is an error of the functions that use it on that worker (spec L10)") {
  Cluster<Local> cluster(2);
  auto& coordinator = cluster.coordinator;
  const auto counter = coordinator.create_per_worker_resource([](const InputContext& input) -> std::atomic<int> {
    if (input.input_pipeline_id() == 1) throw std::logic_error("no counter here");
    return {40};
  });
  const auto count = [](WorkerContext&, std::atomic<int>& value) { return ++value; };
  CHECK(coordinator.schedule_on(0, count, counter).fetch() == 41);
  CHECK(coordinator.schedule_on(0, count, counter).fetch() == 42);
  CHECK(coordinator.schedule_on(1, dist::function<twice>, 4).fetch() == 8);
  CHECK_NOTHROW(coordinator.join());
  const auto bad = coordinator.schedule_on(1, count, counter);
  const auto error = error_of<dist::RemoteError>([&] { coordinator.join(); });
  REQUIRE(error);
  CHECK(error->worker() == 1);
  CHECK(error->thrown() == "std::logic_error");
  CHECK(error->why() == "no counter here");
  CHECK(std::string(error->what()).find("a function that makes a per-worker resource threw std::logic_error") !=
        std::string::npos);
  CHECK_THROWS_AS(bad.fetch(), dist::RemoteError);
}

TEST_CASE("a function of a lost worker runs again, and the worker creates its resources again (spec L02, L09, L14)") {
  Cluster<Flaky> cluster(2);
  auto& coordinator = cluster.coordinator;
  REQUIRE(cluster.connected());
  const auto numbers = coordinator.create_per_worker_dataset([](const InputContext&) {
    ++made;
    return dist::data::range(0, 100);
  });
  const auto next = [](WorkerContext& worker, auto& iterator) { return std::pair{worker.index(), iterator.next()}; };
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::size_t worker = 0; worker < 2; ++worker)
      CHECK(coordinator.schedule_on(worker, next, numbers).fetch().second == i);
  // The reply of worker 1 is lost: the function has run, and runs again.
  Flaky::fail(cluster.workers[1], "worker/run");
  CHECK(coordinator.schedule_on(1, next, numbers).fetch() == std::pair{std::size_t{1}, std::int64_t{0}});
  CHECK(coordinator.schedule_on(0, next, numbers).fetch() == std::pair{std::size_t{0}, std::int64_t{2}});
  CHECK(made == 3);
  const dist::CoordinatorMetrics metrics = coordinator.metrics();
  CHECK(metrics.lost == 1);
  CHECK(metrics.put_back == 1);
  CHECK(metrics.recovery.count == 1);
  CHECK(metrics.connected == 2);

  // A restarted worker has a new session, although its channel has not noticed the restart.
  cluster.workers.stop(0);
  cluster.workers.start(0);
  CHECK(coordinator.schedule_on(0, next, numbers).fetch() == std::pair{std::size_t{0}, std::int64_t{0}});
  CHECK(made == 4);
  CHECK_NOTHROW(coordinator.join());
  // While one is lost, the other runs all functions.
  cluster.workers.stop(0);
  std::vector<RemoteValue<std::pair<std::size_t, std::int64_t>>> values;
  for (int i = 0; i < 20; ++i) values.push_back(coordinator.schedule(next, numbers));
  coordinator.join();
  for (const auto& value : values) CHECK(value.fetch().first == 1);
  CHECK(soon([&] { return coordinator.metrics().connected == 1; }));
  cluster.workers.start(0);
  CHECK(cluster.connected());
}

TEST_CASE("the loss of an idle worker is noticed, and it creates its resources when it is back (spec L14)") {
  Cluster<Local> cluster(2);
  auto& coordinator = cluster.coordinator;
  REQUIRE(cluster.connected());
  const auto number = coordinator.create_per_worker_resource([](const InputContext&) { return ++made; });
  REQUIRE(soon([] { return made == 2; }));
  cluster.workers.stop(1);
  CHECK(soon([&] { return coordinator.metrics().connected == 1; }));
  CHECK(coordinator.metrics().lost == 1);
  cluster.workers.start(1);
  CHECK(soon([] { return made == 3; }));
  CHECK(coordinator
            .schedule_on(
                1, [](WorkerContext&, int& here) { return here; }, number)
            .fetch() == 3);
  CHECK(coordinator.metrics().connected == 2);
  CHECK_NOTHROW(coordinator.join());
}

TEST_CASE("a worker whose resources were lost in transit creates them when it is back (spec L14)") {
  Cluster<Flaky> cluster(1);
  auto& coordinator = cluster.coordinator;
  REQUIRE(cluster.connected());
  Flaky::fail(cluster.workers[0], "worker/make", {.calls = 2});
  const auto number = coordinator.create_per_worker_resource([](const InputContext&) { return ++made; });
  const auto other = coordinator.create_per_worker_resource([](const InputContext&) { return std::string("other"); });
  const auto both =
      coordinator.schedule([](WorkerContext&, int& x, std::string& y) { return y + std::to_string(x); }, number, other);
  CHECK(both.fetch() == "other3");
  CHECK(coordinator.metrics().lost == 2);
}

TEST_CASE("a missing worker is an error after its timeout, repeated only if no other worker is connected (spec L14)") {
  reset();
  LocalWorkers<Local> workers(1);
  const dist::net::Endpoint nobody = dist_test::next_local_endpoint();
  ClusterCoordinator coordinator{dist::WorkerList<Local>{{workers[0], nobody}}, {.recovery_timeout = 100ms}};
  const auto error = error_of<dist::Unavailable>([&] {
    while (true) {
      coordinator.schedule(dist::function<twice>, 1);
      std::this_thread::sleep_for(2ms);
    }
  });
  REQUIRE(error);
  CHECK(error->rank() == 1);
  CHECK(error->host() == to_string(nobody));
  CHECK(std::string(error->what()).find("it did not connect within 0.1 s: ") != std::string::npos);
  CHECK(coordinator.schedule(dist::function<twice>, 1).fetch() == 2);
  std::this_thread::sleep_for(150ms);
  CHECK_NOTHROW(coordinator.join());
  CHECK(coordinator.describe().find("worker 1 at " + to_string(nobody) + " has been lost for ") != std::string::npos);
}

TEST_CASE("a function that loses several workers is finally an error") {
  Cluster<Flaky> cluster(2, {.most_attempts = 3});
  auto& coordinator = cluster.coordinator;
  for (std::size_t worker = 0; worker < 2; ++worker)
    Flaky::fail(cluster.workers[worker], "worker/run", {.calls = 100, .before = true});
  const auto value = coordinator.schedule(dist::function<twice>, 1);
  const auto error = error_of<dist::Unavailable>([&] { coordinator.join(); });
  REQUIRE(error);
  CHECK(error->why().find("workers that ran dist::Function<") == 0);
  CHECK(error->why().find(" were lost 3 times, most recently this worker: the connection broke") != std::string::npos);
  CHECK(value.state() == RemoteState::failed);
  CHECK(coordinator.metrics().put_back == 2);
  for (std::size_t worker = 0; worker < 2; ++worker) Flaky::fail(cluster.workers[worker], "worker/run", {.calls = 0});
  CHECK(coordinator.schedule(dist::function<twice>, 1).fetch() == 2);
}

namespace {

/// Calls a parameter server with index `server`.
struct CallServer {
  std::size_t server;

  int operator()(WorkerContext& worker) const {
    ++ran;
    const std::string& address = worker.servers().at(server);
    const std::size_t colon = address.rfind(':');
    Flaky::Channel channel{{address.substr(0, colon), address.substr(colon + 1)}, {}};
    channel.call("pull", {}, {});
    return 5;
  }
};

}  // namespace

TEST_CASE("functions that find a parameter server unavailable run again, up to a limit per server (spec L15)") {
  const dist::net::Endpoint first = dist_test::next_local_endpoint(), second = dist_test::next_local_endpoint();
  Cluster<Flaky> cluster(2, {}, {first, second});
  const Local::Server server{first, {}, {{"pull", [](Local::Exchange& exchange) { exchange.reply({}); }}}};
  auto& coordinator = cluster.coordinator;
  CHECK(coordinator.schedule(CallServer{0}).fetch() == 5);
  Flaky::fail(first, "pull", {.calls = 2});
  CHECK(coordinator.schedule(CallServer{0}).fetch() == 5);
  CHECK(ran == 4);
  CHECK(coordinator.metrics().put_back == 2);
  CHECK(coordinator.metrics().lost == 0);  // the worker is still connected

  const auto value = coordinator.schedule(CallServer{1});  // nothing listens there
  const auto error = error_of<dist::Unavailable>([&] { coordinator.join(); });
  CHECK(ran == 7);
  REQUIRE(error);
  CHECK(error->rank() == 1);
  CHECK(error->host() == to_string(second));
  CHECK(std::string(error->what())
            .find("Parameter server 1 at " + to_string(second) +
                  " is lost (functions found it lost 3 times, most recently on worker ") == 0);
  CHECK_THROWS_AS(value.fetch(), dist::Unavailable);
  CHECK(coordinator.schedule(dist::function<twice>, 2).fetch() == 4);
  CHECK_NOTHROW(coordinator.join());
  // In a call to another server, this failure is an error of the function (spec L13).
  coordinator.schedule([](WorkerContext&) { Flaky::Channel{{"elsewhere", "1"}, {}}.call("pull", {}, {}); });
  CHECK(error_of<dist::RemoteError>([&] { coordinator.join(); })->thrown() == "dist::RpcError");
}

TEST_CASE("timeouts run again up to a total limit, and cancelled calls up to a higher one (spec L16, L17)") {
  const dist::net::Endpoint slow = dist_test::next_local_endpoint();
  Cluster<Flaky> cluster(1, {.ignored_timeouts = 3}, {slow});
  const Local::Server server{slow, {}, {{"pull", [](Local::Exchange& exchange) { exchange.reply({}); }}}};
  auto& coordinator = cluster.coordinator;
  const dist::rpc::Outcome late{dist::rpc::Failure::deadline, "no reply has arrived", ""};
  Flaky::fail(slow, "pull", {.calls = 10, .outcome = {dist::rpc::Failure::cancelled, "its channel was destroyed", ""}});
  CHECK(coordinator.schedule(CallServer{0}).fetch() == 5);
  CHECK(ran == 11);
  Flaky::fail(slow, "pull", {.calls = 16, .outcome = {dist::rpc::Failure::cancelled, "its channel was destroyed", ""}});
  coordinator.schedule(CallServer{0});
  const auto cancelled = error_of<dist::RemoteError>([&] { coordinator.join(); });
  REQUIRE(cancelled);
  CHECK(cancelled->thrown() == "dist::RpcError");
  CHECK(cancelled->why() == "its channel was destroyed");
  CHECK(ran == 27);
  Flaky::fail(slow, "pull", {.calls = 2, .outcome = late});
  CHECK(coordinator.schedule(CallServer{0}).fetch() == 5);
  CHECK(coordinator.metrics().lost == 0);
  Flaky::fail(cluster.workers[0], "worker/run", {.outcome = late});  // a function_timeout
  CHECK(coordinator.schedule(dist::function<twice>, 1).fetch() == 2);
  CHECK(coordinator.metrics().lost == 1);  // the state of the worker is unknown, so it begins a new session
  CHECK_NOTHROW(coordinator.join());
  Flaky::fail(slow, "pull", {.outcome = late});
  coordinator.schedule(CallServer{0});
  CHECK(what_throws<dist::DeadlineExceeded>([&] { coordinator.join(); }) ==
        "A scheduled function waited too long for parameter server 0 (no reply has arrived). Give its calls a longer "
        "timeout, or see what keeps the server busy.");
  Flaky::fail(cluster.workers[0], "worker/run", {.outcome = late});
  coordinator.schedule(dist::function<twice>, 1);
  CHECK(what_throws<dist::DeadlineExceeded>([&] {
          coordinator.join();
        }).find("A scheduled function took too long on worker 0 at ") == 0);
  Flaky::fail(cluster.workers[0], "worker/run", {.outcome = {dist::rpc::Failure::cancelled, "by somebody", ""}});
  CHECK(coordinator.schedule(dist::function<twice>, 3).fetch() == 6);
}

TEST_CASE("a worker that rejects its coordinator is an error, and is tried again") {
  Cluster<Flaky> cluster(1);
  auto& coordinator = cluster.coordinator;
  REQUIRE(cluster.connected());
  Flaky::fail(cluster.workers[0], "worker/run", {.outcome = {dist::rpc::Failure::refused, "another secret", ""}});
  coordinator.schedule(dist::function<twice>, 1);
  CHECK(error_of<dist::RpcError>([&] { coordinator.join(); })->failure() == dist::rpc::Failure::refused);
  CHECK(coordinator.schedule(dist::function<twice>, 1).fetch() == 2);

  Flaky::fail(cluster.workers[0], "worker/greet", {.outcome = {dist::rpc::Failure::refused, "another secret", ""}});
  cluster.workers.stop(0);
  cluster.workers.start(0);
  const auto value = coordinator.schedule(dist::function<twice>, 2);
  CHECK(error_of<dist::RpcError>([&] { coordinator.join(); })->why() == "another secret");
  CHECK(value.state() == RemoteState::cancelled);
  CHECK(coordinator.schedule(dist::function<twice>, 2).fetch() == 4);
}

TEST_CASE("a worker of another program is rejected by name") {
  const dist::net::Endpoint there = dist_test::next_local_endpoint();
  const Local::Server server{there, {}, {{"worker/greet", [](Local::Exchange& exchange) {
                                            exchange.reply(dist::to_bytes(dist::detail::Handshake{"0123abcd", 0}));
                                          }}}};
  ClusterCoordinator coordinator{dist::WorkerList<Local>{{there}}};
  std::this_thread::sleep_for(5ms);
  const std::string words = what_throws<dist::InvalidArgument>([&] {
    coordinator.schedule(dist::function<twice>, 1);
    coordinator.join(10s);
  });
  CHECK(words.find(
            "Worker 0 at " + to_string(there) +
            " runs a different program from its coordinator (its build is '0123abcd', the coordinator's build is '") ==
        0);
}

TEST_CASE("an added worker runs functions") {
  Cluster<Local> cluster(1);
  auto& coordinator = cluster.coordinator;
  const auto number = coordinator.create_per_worker_resource(
      [](const InputContext& input) { return 10 * input.input_pipeline_id() + input.num_input_pipelines(); });
  const auto busy = coordinator.schedule(dist::function<wait_for_gate>);
  REQUIRE(soon([] { return running == 1; }));
  const auto value = coordinator.schedule(
      [](WorkerContext& worker, std::size_t& here) {
        return std::pair{worker.index(), here};
      },
      number);
  CHECK_THROWS_AS(value.fetch(20ms), dist::DeadlineExceeded);
  CHECK(coordinator.add_worker(cluster.workers[cluster.workers.add()]) == 1);
  CHECK(value.fetch() == std::pair{std::size_t{1}, std::size_t{12}});
  CHECK(coordinator.num_workers() == 2);
  gate = true;
  coordinator.join();
  CHECK(what_throws([&] { coordinator.schedule_on(2, dist::function<twice>, 1); }) ==
        "A function is scheduled on a worker that does not exist (number 2 of 2 workers). Give a number below the "
        "number of workers.");
}

TEST_CASE("a function for one worker runs there (spec L20)") {
  Cluster<Local> cluster(3);
  for (std::size_t i = 0; i < 9; ++i)
    CHECK(cluster.coordinator.schedule_on(i % 3, [](WorkerContext& worker) { return worker.index(); }).fetch() ==
          i % 3);
}

TEST_CASE("workers start one after another with start_delay, up to its limit (spec L12)") {
  const auto begins_after = [](std::size_t worker, const CoordinatorOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    Cluster<Local> cluster(worker + 1, options);
    cluster.coordinator.schedule_on(worker, dist::function<twice>, 1).fetch(30s);
    return std::chrono::steady_clock::now() - begin;
  };
  CHECK(begins_after(0, {.start_delay = 1h}) < 1h);
  CHECK(begins_after(1, {.start_delay = 40ms}) >= 40ms);
  CHECK(begins_after(2, {.start_delay = 40ms}) >= 80ms);
  const auto bounded = begins_after(2, {.start_delay = 1h, .longest_start_delay = 50ms});
  CHECK(bounded >= 50ms);
  CHECK(bounded < 1h);
}

TEST_CASE("metrics count functions, their waits and their times (spec L21)") {
  Cluster<Local> cluster(1);
  auto& coordinator = cluster.coordinator;
  reset();
  coordinator.schedule(dist::function<wait_for_gate>);
  REQUIRE(soon([] { return running == 1; }));
  coordinator.schedule([](WorkerContext&) { std::this_thread::sleep_for(5ms); });
  std::this_thread::sleep_for(20ms);
  gate = true;
  coordinator.join();
  const dist::CoordinatorMetrics metrics = coordinator.metrics();
  CHECK(metrics.finished == 2);
  CHECK(metrics.waiting == 0);
  CHECK(metrics.in_flight == 0);
  CHECK(metrics.failed == 0);
  CHECK(metrics.workers == 1);
  CHECK(metrics.execution.count == 2);
  CHECK(metrics.execution.total >= 25ms);
  CHECK(metrics.execution.longest >= 20ms);
  CHECK(metrics.queue_wait.count == 2);
  CHECK(metrics.queue_wait.longest >= 20ms);
  CHECK(metrics.put_back == 0);
}

TEST_CASE("the state of all workers is printed if no function finishes (spec L19)") {
  const testing::Ending ending = testing::stderr_of([] {
    Cluster<Local> cluster(1, {.watchdog_timeout = 30ms});
    cluster.coordinator.schedule(dist::function<wait_for_gate>);
    std::this_thread::sleep_for(100ms);
  });
  CAPTURE(ending.stderr_text);
  CHECK(ending.says("dist: no scheduled function has ended for 0.0"));
  CHECK(ending.says(" s: 0 functions wait; worker 0 at here:"));
  CHECK(ending.says(" has run dist::Function<"));
}

TEST_CASE("describe reports waiting and running functions") {
  Cluster<Local> cluster(1);
  auto& coordinator = cluster.coordinator;
  coordinator.schedule(dist::function<wait_for_gate>);
  REQUIRE(soon([] { return running == 1; }));
  coordinator.schedule(dist::function<twice>, 1);
  const std::string words = coordinator.describe();
  CHECK(words.find("1 function waits, the first for 0") == 0);
  CHECK(words.find("; worker 0 at " + to_string(cluster.workers[0]) + " has run dist::Function<") != std::string::npos);
  CHECK(words.find(" for 0") != std::string::npos);
}

TEST_CASE("a reported error outside functions is thrown like an error of a function") {
  Cluster<Local> cluster(1);
  cluster.coordinator.report(std::make_exception_ptr(dist::ServerUnavailable(2, "a:1", "is gone", "gone", "Go")));
  CHECK(what_throws<dist::ServerUnavailable>([&] { cluster.coordinator.join(); }) ==
        "Parameter server 2 at a:1 is gone (gone). Go.");
  CHECK_NOTHROW(cluster.coordinator.join());
}

TEST_CASE("the destructor cancels waiting functions, and asks running ones to stop") {
  RemoteValue<void> runs;
  RemoteValue<int> waits;
  LocalWorkers<Local> workers(1);
  reset();
  {
    ClusterCoordinator coordinator{workers.list()};
    runs = coordinator.schedule(dist::function<wait_for_gate>);
    waits = coordinator.schedule(dist::function<twice>, 1);
    REQUIRE(soon([] { return running == 1; }));
  }
  CHECK(running == 0);
  CHECK(waits.state() == RemoteState::cancelled);
  CHECK(workers.service(0).sessions() == 0);
  // It has returned on request; over Local, its result arrives nevertheless.
  CHECK(runs.state() != RemoteState::not_ready);
}

TEST_CASE("the destructor does not wait for a function that does not stop") {
  LocalWorkers<Local> workers(1);
  reset();
  RemoteValue<void> left_behind;
  {
    ClusterCoordinator coordinator{workers.list(), {.end_timeout = 50ms}};
    left_behind = coordinator.schedule([](WorkerContext&) {
      ++running;
      while (!gate) std::this_thread::sleep_for(1ms);
      --running;
    });
    REQUIRE(soon([] { return running == 1; }));
  }
  CHECK(running == 1);
  CHECK(left_behind.state() == RemoteState::aborted);
  CHECK(
      what_throws<dist::Cancelled>([&] { left_behind.fetch(); }) ==
      "A scheduled function was aborted (its coordinator ended while a worker ran it). Schedule the function again if "
      "its result is wanted.");
  gate = true;
  CHECK(soon([] { return running == 0; }));
}

TEST_CASE("another coordinator takes over the workers of an ended one (spec L22)") {
  LocalWorkers<Local> workers(2);
  for (int again = 0; again < 3; ++again) {
    ClusterCoordinator coordinator{workers.list()};
    const auto numbers =
        coordinator.create_per_worker_dataset([](const InputContext&) { return dist::data::range(0, 9); });
    for (std::size_t worker = 0; worker < 2; ++worker)
      CHECK(coordinator
                .schedule_on(
                    worker, [](WorkerContext&, auto& it) { return it.next(); }, numbers)
                .fetch() == 0);
    CHECK(workers.service(0).sessions() == 1);
  }
}

TEST_CASE("a thousand coordinators leak no threads, descriptors, sessions or memory") {
  LocalWorkers<Local> workers(2);
  std::size_t threads = 0, descriptors = 0;
  std::ptrdiff_t live = 0;
  for (int i = 0; i < 1000; ++i) {
    {
      ClusterCoordinator coordinator{workers.list()};
      CHECK(coordinator.schedule(dist::function<twice>, i).fetch() == 2 * i);
    }
    if (i == 99) {
      threads = threads_of_this_process();
      descriptors = descriptors_of_this_process();
      live = live_allocations;
    }
  }
  CHECK(threads_of_this_process() == threads);
  CHECK(descriptors_of_this_process() == descriptors);
  CHECK(live_allocations - live < 100);  // of 900 coordinators
  CHECK(workers.service(0).sessions() == 0);
  CHECK(workers.service(1).sessions() == 0);
}
