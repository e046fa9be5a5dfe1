// The order in which the processes of a job with parameter servers end, and their exit statuses: each row of the table
// "How a job ends" in examples/parameter_servers.md. Each process of a job is a system process.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dist/checkpoint/preemption_handler.hpp>
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/serve.hpp>
#include <dist/core/error.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/strategy/parameter_server.hpp>

#include <doctest/doctest.h>

#include "net/ports.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/soon.hpp"
#include "support/spawned.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace std::chrono_literals;
using dist::Grpc;
using dist::Task;
using dist::TaskType;

enum Process { chief, ps, worker_0, worker_1, processes };
constexpr Task tasks[] = {
    {TaskType::chief, 0}, {TaskType::parameter_server, 0}, {TaskType::worker, 0}, {TaskType::worker, 1}};

/// The behaviour of the chief's program at the end.
enum class Chief {
  saves,       ///< has a PreemptionHandler
  saves_not,   ///< has none
  fails,       ///< throws an exception outside the library, and exits with status 1
  is_refused,  ///< throws InvalidArgument
  never_comes
};

constexpr int by_signal = -1;  ///< ended by the signal, as reported by Spawned

struct Row {
  const char* name;
  Chief program;
  int signal;                  ///< 0: none
  std::vector<Process> to;     ///< receivers of the signal
  bool chief_ends;             ///< whether the chief finishes its work after the signal
  int status[processes];       ///< of each process
  bool saves = false;          ///< whether a checkpoint exists at the end
  std::string_view ps_says{};  ///< part of the output of the parameter server
};

const Row rows[] = {
    {"the work is done", Chief::saves, 0, {}, true, {0, 0, 0, 0}},
    {"the chief is told to end",
     Chief::saves,
     SIGTERM,
     {chief},
     false,
     {42, 42, 42, 42},
     true,
     "ended the job with status 42"},
    {"all are told to end",
     Chief::saves,
     SIGTERM,
     {chief, ps, worker_0, worker_1},
     false,
     {42, 42, 42, 42},
     true,
     "ended the job with status 42"},
    {"all are told to end, and the chief does not save",
     Chief::saves_not,
     SIGTERM,
     {chief, ps, worker_0, worker_1},
     false,
     {by_signal, 75, 75, 75},
     false,
     "has lost its coordinator"},
    {"all are told to end before there is a chief",
     Chief::never_comes,
     SIGTERM,
     {ps, worker_0, worker_1},
     false,
     {0, 42, 42, 42},
     false,
     "no coordinator has connected yet"},
    {"a parameter server is told to end alone",
     Chief::saves,
     SIGTERM,
     {ps},
     false,
     {75, 75, 75, 75},
     false,
     "did not end it within"},
    {"a worker is told to end alone", Chief::saves, SIGTERM, {worker_0}, true, {0, 0, 75, 0}},
    {"all but the chief are told to end, which ends its work in time",
     Chief::saves,
     SIGTERM,
     {ps, worker_0, worker_1},
     true,
     {0, 0, 0, 0}},
    {"the chief is killed",
     Chief::saves,
     SIGKILL,
     {chief},
     false,
     {by_signal, 75, 75, 75},
     false,
     "disconnected without notice, and did not return within 0.5 s"},
    {"a parameter server is killed", Chief::saves, SIGKILL, {ps}, false, {75, by_signal, 75, 75}},
    {"a worker is killed", Chief::saves, SIGKILL, {worker_0}, true, {0, 0, by_signal, 0}},
    {"the chief's program fails", Chief::fails, 0, {}, false, {1, 75, 75, 75}, false, "has lost its coordinator"},
    {"the chief's program is wrong",
     Chief::is_refused,
     0,
     {},
     false,
     {78, 75, 75, 75},
     false,
     "has lost its coordinator"},
};

/// A step, which takes a short time.
constexpr auto step = [](dist::WorkerContext& worker, dist::ServerVariable<float, Grpc>& variable) {
  variable.assign_add(worker, 1.0F);
  std::this_thread::sleep_for(2ms);
};

std::string variable(const char* name) { return std::getenv(name); }
bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// The program of all processes. It works until a file "end" exists.
int run_task(const dist::SimpleResolver& resolver, Chief program, const std::string& folder) {
  dist::server::ServeOptions serving;
  serving.wait_for_coordinator = 60s;
  serving.keep_alive = 500ms;
  serving.leave_timeout = program == Chief::saves && exists(folder + "/impatient") ? 1s : 30s;
  dist::ReportSignal::answer_to_the_end();
  dist::log_line("it serves");
  if (dist::serve<Grpc>(resolver, serving)) return 0;

  dist::ParameterServer<Grpc> strategy{resolver};
  dist::ClusterCoordinator coordinator{strategy};
  auto variable = strategy.variable<float>({4}, 0.0F, "variable");
  dist::Checkpoint checkpoint{strategy};
  checkpoint.add("variable", variable);
  dist::CheckpointManager manager{checkpoint, folder + "/checkpoints"};
  std::optional<dist::PreemptionHandler<dist::ParameterServer<Grpc>>> preemption;
  if (program == Chief::saves) preemption.emplace(manager);
  for (bool said = false; !exists(folder + "/end");) {
    for (int i = 0; i < 2; ++i) coordinator.schedule(step, variable);
    coordinator.join();
    if (!said && coordinator.metrics().connected == 2) {
      said = true;
      dist::log_line("it works");
    }
    if (exists(folder + "/fail")) {
      if (program == Chief::fails) throw std::runtime_error("the program fails");
      throw dist::InvalidArgument("The program is wrong", "the test says so", "None");
    }
    if (preemption && preemption->save_if_preempted()) return preemption->exit_code();
  }
  return 0;
}

class Job {
 public:
  explicit Job(const Row& row) : row_(row) {
    const bool alone = row.signal == SIGTERM && row.to.size() == 1 && row.to.front() != chief;
    if (alone) folder_.write("impatient", "");
    std::string ports;
    for (const auto& endpoint : dist_test::free_endpoints(processes)) ports += endpoint.port + " ";
    for (int process = row.program == Chief::never_comes ? ps : chief; process < processes; ++process)
      running_[process] = std::make_unique<support::Spawned>(
          "a task of a job that ends",
          std::vector{"DIST_TEST_PORTS=" + ports, dist::concat("DIST_TEST_TASK=", process),
                      dist::concat("DIST_TEST_PROGRAM=", static_cast<int>(row.program)),
                      "DIST_TEST_FOLDER=" + folder_.path()},
          folder_.path(dist::concat("stderr", process)));
  }

  void run() {
    const bool has_chief = row_.program != Chief::never_comes;
    REQUIRE(support::soon([&] { return !has_chief || says(chief, "it works"); }));
    // Each process reports on a signal what it waits for: the chief, or nothing once it is connected.
    for (int process = ps; process < processes; ++process)
      REQUIRE(support::soon([&] {
        if (serves(process)) running_[process]->signal(SIGUSR1);
        std::this_thread::sleep_for(20ms);
        return says(process,
                    has_chief ? ") waits for no other process or replica" : ") waits for chief 0 at 127.0.0.1:");
      }));
    for (const Process process : row_.to) running_[process]->signal(row_.signal);
    if (row_.program == Chief::fails || row_.program == Chief::is_refused) folder_.write("fail", "");
    if (row_.chief_ends) {
      // A worker that ends alone does so first.
      for (int process = chief; process < processes; ++process)
        if (row_.status[process] != 0) check_status(process);
      folder_.write("end", "");
    }
    for (int process = has_chief ? chief : ps; process < processes; ++process) check_status(process);
    CHECK(exists(folder_.path("checkpoints/ckpt-1")) == row_.saves);
    CHECK(says(ps, row_.ps_says));
  }

 private:
  [[nodiscard]] bool says(int process, std::string_view words) const {
    return folder_.read(dist::concat("stderr", process)).find(words) != std::string::npos;
  }
  /// Returns whether it has a handler for SIGUSR1.
  [[nodiscard]] bool serves(int process) const { return says(process, "it serves"); }
  void check_status(int process) {
    if (checked_[process]) return;
    checked_[process] = true;
    CAPTURE(to_string(tasks[process]));
    const std::optional<int> status = running_[process]->exit_status_within(60s);
    CHECK(status == row_.status[process]);
    if (status != row_.status[process]) MESSAGE(folder_.read(dist::concat("stderr", process)));
  }

  const Row& row_;
  const support::TemporaryFolder folder_;
  std::unique_ptr<support::Spawned> running_[processes];
  bool checked_[processes] = {};
};

}  // namespace

TEST_CASE("a task of a job that ends" * doctest::skip()) {
  signal(SIGTERM, SIG_DFL);  // the test framework handles it
  std::string ports = variable("DIST_TEST_PORTS");
  dist::ClusterSpec cluster;
  for (const Task task : tasks) {
    const std::size_t end = ports.find(' ');
    cluster.add(task, "127.0.0.1:" + ports.substr(0, end));
    ports.erase(0, end + 1);
  }
  const Task own = tasks[std::stoul(variable("DIST_TEST_TASK"))];
  const auto program = static_cast<Chief>(std::stoi(variable("DIST_TEST_PROGRAM")));
  int status = 0;
  try {
    status = run_task(dist::SimpleResolver{cluster, own}, program, variable("DIST_TEST_FOLDER"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = dist::exit_code(error);
  }
  std::_Exit(status);
}

TEST_CASE("processes end in the order and with the statuses of the table") {
  for (const Row& row : rows) {
    CAPTURE(std::string{row.name});
    Job{row}.run();
  }
}
