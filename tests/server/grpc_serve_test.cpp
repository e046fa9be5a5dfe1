// Parameter servers, a worker and coordinators as processes, which are killed, stopped and restarted.
#include <dist/server/serve.hpp>

#include <signal.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/server/client.hpp>
#include <dist/server/session.hpp>

#include <doctest/doctest.h>

#include "net/ports.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/sanitizers.hpp"
#include "support/spawned.hpp"
#include "support/temporary_folder.hpp"
#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::ClusterSpec;
using dist::Grpc;
using dist::Task;
using dist::TaskType;
using dist::server::Served;
using dist::server::SessionOptions;
using Client = dist::server::Client<Grpc>;
using Clock = std::chrono::steady_clock;
using Session = dist::server::Session<Grpc>;

#ifdef DIST_TEST_SANITIZER
constexpr auto silence = 10s, kill_seen = 60s, stop_seen = 60s;
#else
constexpr auto silence = 1s, kill_seen = 3s, stop_seen = 8s;
#endif
constexpr Task tasks[] = {{TaskType::parameter_server, 0}, {TaskType::parameter_server, 1}, {TaskType::worker, 0}};

/// DIST_TEST_PORTS has the ports of `tasks`, with a space after each.
ClusterSpec cluster_of_test() {
  std::string ports = std::getenv("DIST_TEST_PORTS");
  ClusterSpec cluster;
  for (const Task task : tasks) {
    const std::size_t end = ports.find(' ');
    cluster.add(task, "127.0.0.1:" + ports.substr(0, end));
    ports.erase(0, end + 1);
  }
  return cluster;
}
SessionOptions session_options() {
  SessionOptions options;
  options.channel.silence = silence;
  return options;
}
dist::server::ClientOptions client_options(std::uint64_t incarnation) {
  dist::server::ClientOptions options;
  options.channel.silence = silence;
  options.incarnation = incarnation;
  return options;
}

/// Two parameter servers and a worker.
class Job {
 public:
  explicit Job(std::chrono::milliseconds keep_alive, std::chrono::milliseconds its_silence = silence)
      : linger_(keep_alive), silence_(its_silence) {
    std::string ports;
    for (const auto& endpoint : endpoints_) ports += endpoint.port + " ";
    environment_ = "DIST_TEST_PORTS=" + ports;
    for (std::size_t task = 0; task < std::size(tasks); ++task) start(task);
  }
  void start(std::size_t task) {
    processes[task] = std::make_unique<support::Spawned>(
        "a task of the suite", std::vector{environment_, "DIST_TEST_TASK=" + std::to_string(task),
                                           "DIST_TEST_LINGER=" + std::to_string(linger_.count()),
                                           "DIST_TEST_SILENCE=" + std::to_string(silence_.count())});
  }
  /// Starts a coordinator that works forever, with its stderr in a file. Returns once it works.
  std::unique_ptr<support::Spawned> coordinator() {
    auto process = std::make_unique<support::Spawned>("a coordinator of the suite", std::vector{environment_},
                                                      folder.path("stderr"));
    const auto begin = Clock::now();
    while (folder.read("stderr").find("it works") == std::string::npos && Clock::now() - begin < 60s)
      std::this_thread::sleep_for(5ms);
    return process;
  }
  [[nodiscard]] std::vector<Served> served() const {
    std::vector<Served> all;
    for (std::size_t task = 0; task < std::size(tasks); ++task) all.push_back({tasks[task], endpoints_[task]});
    return all;
  }
  [[nodiscard]] const dist::net::Endpoint& endpoint(std::size_t task) const { return endpoints_[task]; }
  void check_that_all_end(int status = 0) {
    for (const auto& process : processes) CHECK(process->exit_status_within(20s) == status);
  }

  support::TemporaryFolder folder;
  std::unique_ptr<support::Spawned> processes[std::size(tasks)];

 private:
  const std::vector<dist::net::Endpoint> endpoints_ = dist_test::free_endpoints(std::size(tasks));
  const std::chrono::milliseconds linger_, silence_;
  std::string environment_;
};

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

TEST_CASE("a task of the suite" * doctest::skip()) {
  dist::server::ServeOptions options;
  options.wait_for_coordinator = 60s;
  options.keep_alive = std::chrono::milliseconds{std::atoi(std::getenv("DIST_TEST_LINGER"))};
  options.end_timeout = 300ms;
  options.server.silence = std::chrono::milliseconds{std::atoi(std::getenv("DIST_TEST_SILENCE"))};
  const dist::SimpleResolver resolver{cluster_of_test(), tasks[std::atoi(std::getenv("DIST_TEST_TASK"))]};
  try {
    const bool served = dist::server::serve<Grpc>(resolver, options, {{"never", [](Grpc::Exchange&) {
                                                                         for (;;) std::this_thread::sleep_for(1s);
                                                                       }}});
    CHECK(served);
  } catch (const dist::Error& error) {
    std::_Exit(dist::exit_code(error));
  }
}

TEST_CASE("a coordinator of the suite" * doctest::skip()) {
  const ClusterSpec cluster = cluster_of_test();
  const dist::SimpleResolver resolver{cluster, Task{TaskType::chief, 0}};
  REQUIRE(!dist::server::serve<Grpc>(resolver));
  const Session session{dist::server::served_by(cluster, "the suite"), session_options()};
  Client client{1, dist::task_endpoint(cluster, tasks[1], "the suite"), client_options(session.incarnation(tasks[1]))};
  client.create({7, "w", 2, 1, 0}, 1.5f);
  while (session.incarnation(tasks[2]) == 0) std::this_thread::sleep_for(1ms);
  dist::log_line("it works");
  for (;;) {
    session.check();
    std::this_thread::sleep_for(1ms);
  }
}

TEST_CASE("processes end with their coordinator (spec J12, R01)") {
  Job job{60s};
  std::optional<Session> session{std::in_place, job.served(), session_options()};
  while (session->incarnation(tasks[2]) == 0) std::this_thread::sleep_for(1ms);
  CHECK(!job.processes[0]->exit_status_within(100ms));
  const auto begin = Clock::now();
  session.reset();
  job.check_that_all_end();
  MESSAGE("all have ended " << milliseconds_since(begin) << " ms after the coordinator");
}

TEST_CASE("a worker ends although a function of its coordinator does not") {
  Job job{60s};
  std::optional<Session> session{std::in_place, job.served(), session_options()};
  while (session->incarnation(tasks[2]) == 0) std::this_thread::sleep_for(1ms);
  Grpc::Channel channel{job.endpoint(2), {.silence = silence}};
  Grpc::Call call = channel.start("never", {}, {});
  CHECK(!job.processes[2]->exit_status_within(100ms));
  session.reset();
  CHECK(job.processes[2]->exit_status_within(20s) == EXIT_FAILURE);
  CHECK_THROWS_AS(call.wait(), dist::RpcError);
  CHECK(job.processes[0]->exit_status_within(20s) == 0);
}

TEST_CASE("another coordinator takes over the parameter servers of a killed one (spec L22)") {
  Job job{60s};
  const auto killed = job.coordinator();
  killed->kill();
  const auto begin = Clock::now();
  {
    SessionOptions options = session_options();
    options.takes_over = true;
    const Session session{job.served(), options};
    MESSAGE("another coordinator is welcome " << milliseconds_since(begin) << " ms after the kill");
    Client client{1, job.endpoint(1), client_options(session.incarnation(tasks[1]))};
    std::vector<float> values(2);
    client.pull(7, std::span{values});
    CHECK(values == std::vector{1.5f, 1.5f});
    while (session.incarnation(tasks[2]) == 0) std::this_thread::sleep_for(1ms);
  }
  job.check_that_all_end();
}

TEST_CASE("without another coordinator, all processes fail by themselves") {
  Job job{200ms};
  const auto killed = job.coordinator();
  killed->kill();
  job.check_that_all_end(75);
}

TEST_CASE("a coordinator notices a killed or stopped parameter server within seconds (spec L15)") {
#ifdef DIST_TEST_SANITIZER
  constexpr int signals[] = {SIGKILL};  // the other signal takes as long as the silence
#else
  constexpr int signals[] = {SIGKILL, SIGSTOP};
#endif
  for (const int signal : signals) {
    CAPTURE(signal);
    Job job{0ms};
    const auto coordinator = job.coordinator();
    const auto begin = Clock::now();
    job.processes[1]->signal(signal);
    const std::optional<int> status = coordinator->exit_status_within(signal == SIGKILL ? kill_seen : stop_seen);
    REQUIRE(status);
    CHECK(status != 0);
    MESSAGE("the coordinator has ended " << milliseconds_since(begin) << " ms after signal " << signal);
    const std::string said = job.folder.read("stderr");
    CAPTURE(said);
    CHECK(said.find("dist: Parameter server 1 at " + to_string(job.endpoint(1)) + " is unavailable (") !=
          std::string::npos);
    CHECK(said.find("3 times). Restart the job from its last checkpoint.") != std::string::npos);
    CHECK(job.processes[0]->exit_status_within(20s) == 75);
    CHECK(job.processes[2]->exit_status_within(20s) == 75);
  }
}

TEST_CASE("a parameter server that is stopped for less than the silence is not lost") {
  Job job{0ms, 60s};
  SessionOptions options = session_options();
  options.channel.silence = 60s;
  const Session session{job.served(), options};
  dist::server::ClientOptions patient = client_options(session.incarnation(tasks[1]));
  patient.channel.silence = 60s;
  Client client{1, job.endpoint(1), patient};
  client.create({7, "w", 2, 1, 0}, 1.5f);
  job.processes[1]->signal(SIGSTOP);
  std::this_thread::sleep_for(500ms);
  CHECK_NOTHROW(session.check());
  job.processes[1]->signal(SIGCONT);
  std::vector<float> values(2);
  client.pull(7, std::span{values});
  CHECK(values == std::vector{1.5f, 1.5f});
  CHECK_NOTHROW(session.check());
}

TEST_CASE("a restarted parameter server reports that it has lost its variables") {
  Job job{0ms};
  SessionOptions options = session_options();
  options.attempts = 1000;  // so that the server restarts before it is unavailable
  const Session session{job.served(), options};
  Client client{1, job.endpoint(1), client_options(session.incarnation(tasks[1]))};
  client.create({7, "w", 2, 1, 0}, 1.5f);
  job.processes[1]->kill();
  job.start(1);
  const auto begin = Clock::now();
  const auto lost = [&] { return support::what_throws<dist::ServerUnavailable>([&] { session.check(); }); };
  while (lost() == "nothing was thrown" && Clock::now() - begin < 60s) std::this_thread::sleep_for(5ms);
  const std::string expected =
      "Parameter server 1 at " + to_string(job.endpoint(1)) + " has lost its variables: restore a checkpoint";
  CHECK(lost().starts_with(expected));
  std::vector<float> values(2, -1.0f);
  CHECK(
      support::what_throws<dist::ServerUnavailable>([&] { client.pull(7, std::span{values}); }).starts_with(expected));
  CHECK(values == std::vector{-1.0f, -1.0f});
}
