// What becomes of a job with parameter servers on MPI when one of its processes is killed or stopped: it ends with an error that
// names that process. The test starts itself under mpirun, so that it sees how that ends.
#include <dist/cluster/mpi/roles_resolver.hpp>
#include <dist/comm/mpi/rpc.hpp>
#include <dist/parameter_server.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "support/own_mpirun.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using dist::Mpi;

// A chief, two workers and a parameter server.
constexpr std::size_t chief = 0, second_worker = 2, parameter_server = 3;

/// What the processes of the job print, where `victim` does `fault` to itself while functions run.
std::string run_job(std::size_t victim, std::string_view fault) {
  return support::output_of(
      {.processes = 4,
       .test_case = "a process of the job",
       .environment = dist::text("OMPI_MCA_btl_vader_single_copy_mechanism=none DIST_TEST_VICTIM=", victim,
                                 " DIST_TEST_FAULT=", fault)});
}

std::size_t own_rank() { return std::strtoul(std::getenv(support::variable_of_rank), nullptr, 10); }

bool fault_is(std::string_view fault) { return std::getenv("DIST_TEST_FAULT") == fault; }

/// Stops this process when it has just begun to receive a long message.
void stop_in_message() {
  using dist::mpi::detail::CallEngine;
  CallEngine& engine = CallEngine::of_process();
  for (bool before = true;; std::this_thread::sleep_for(50us)) {
    const CallEngine::Visit visit{engine};  // MPI makes no progress here meanwhile
    const bool now = engine.transfers().are_under_way();
    if (now && !before) {
      std::printf("rank %zu is struck\n", own_rank());
      std::fflush(nullptr);
      raise(SIGSTOP);
      return;
    }
    before = now;
  }
}

/// Kills or stops this process a little later, if it is the victim: when all have met.
void strike() {
  static_cast<void>(dist::mpi::detail::CallEngine::of_process());
  if (std::getenv("DIST_TEST_VICTIM") != std::to_string(own_rank())) return;
  std::thread([] {
    std::this_thread::sleep_for(700ms);
    if (fault_is("stopped_in_message")) return stop_in_message();
    std::printf("rank %zu is struck\n", own_rank());
    std::fflush(nullptr);
    raise(fault_is("killed") ? SIGKILL : SIGSTOP);
  }).detach();
}

/// Prints what this process ended with, and waits a little, because mpirun ends all when the first of them ends: the others
/// shall speak before.
[[noreturn]] void end(std::string_view what) {
  std::printf("rank %zu ended: %s\n", own_rank(), std::string{what}.c_str());
  std::fflush(nullptr);
  std::this_thread::sleep_for(1s);
  if (!fault_is("killed")) kill(0, SIGCONT);
  std::_Exit(0);
}

/// The milliseconds that the coordinator worked until it ended by an error.
long time_of(const std::string& output) {
  const std::size_t at = output.find("after ms: ");
  return at == std::string::npos ? -1 : std::strtol(output.c_str() + at + 10, nullptr, 10);
}
bool has(const std::string& output, std::string_view part) { return output.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a process of the job" * doctest::skip()) {
  const dist::MpiRolesResolver resolver{{.parameter_servers = 1}};
  strike();
  try {
    dist::server::ServeOptions options;
    options.server.silence = 2s;
    if (dist::serve<Mpi>(resolver, options)) end("it has served");
  } catch (const dist::Error& error) {
    end(error.what());
  }
  const auto start = Clock::now();
  try {
    dist::ParameterServer<Mpi> strategy{resolver, {.channel = {.silence = 2s}}};
    dist::ClusterCoordinator coordinator{strategy};
    auto weights = strategy.variable<float>({1000}, 0.0F, "weights");
    if (std::getenv("DIST_TEST_VICTIM") == std::to_string(parameter_server)) {
      const dist::Tensor<float> values{{std::size_t{4} << 20}};
      while (fault_is("stopped_in_message"))  // parts of a message are always on their way
        static_cast<void>(strategy.variable<float>(values.shape(), values, "large"));
      auto large = strategy.variable<float>(values.shape(), 0.0F, "large");
      for (;;) large.assign(strategy.scope(), values);  // in the server's memory
    }
    for (;;) {
      for (int i = 0; i < 20; ++i)
        coordinator.schedule(
            [](dist::WorkerContext& worker, auto& shared) {
              static_cast<void>(shared.pull(worker));
              std::this_thread::sleep_for(5ms);
            },
            weights);
      coordinator.join();
    }
  } catch (const dist::Error& error) {
    std::printf("after ms: %d\n", static_cast<int>((Clock::now() - start) / 1ms));
    end(error.what());
  }
}

TEST_CASE("a killed worker ends the job with an error that names it, in seconds (spec O01)") {
  const std::string output = run_job(second_worker, "killed");
  CAPTURE(output);
  CHECK_FALSE(has(output, "strategy of one process"));
  CHECK(has(output, "rank 2 is struck"));
  CHECK(has(output, "rank 0 ended: Worker 1 on host rank-2:1 is gone (rank 2 on host "));
  CHECK(has(output, ": its process "));
  CHECK(time_of(output) < 20'000);
  CHECK(time_of(output) > 0);
}

TEST_CASE("a killed parameter server ends the job with an error that names it, in seconds (spec L15)") {
  const std::string output = run_job(parameter_server, "killed");
  CAPTURE(output);
  CHECK(has(output, "rank 0 ended: Parameter server 0 at rank-3:1 is "));
  CHECK(has(output, "(rank 3 on host "));
  CHECK(time_of(output) < 20'000);
  CHECK(time_of(output) > 0);
}

TEST_CASE("a killed coordinator ends servers and workers at once (spec L22)") {
  const std::string output = run_job(chief, "killed");
  CAPTURE(output);
  for (const char* const process : {"1 ended: worker 0", "2 ended: worker 1", "3 ended: ps 0"})
    CHECK(has(output, std::string{"rank "} + process + " at rank-"));
  CHECK(has(output, " has lost its coordinator ("));
  CHECK(has(output, " has gone without a word). Start the job again from its last checkpoint."));
}

TEST_CASE("a stopped worker is silent, and ends the job with an error that says so") {
  const std::string output = run_job(second_worker, "stopped");
  CAPTURE(output);
  CHECK(has(output, "rank 0 ended: Worker 1 on host rank-2:1 is gone (rank 2 on host "));
  CHECK(has(output, ": it has been silent for 2 s"));
  CHECK(time_of(output) < 20'000);
}

TEST_CASE("a stopped parameter server ends its coordinator, which pushes to its memory, with an error that says so") {
  const std::string output = run_job(parameter_server, "stopped");
  CAPTURE(output);
  CHECK(has(output, "rank 0 ended: Parameter server 0 at rank-3:1 is "));
  CHECK(has(output, ": it has been silent for 2 s, and a signal has stopped "));
  CHECK(time_of(output) < 20'000);
  CHECK(time_of(output) > 0);
}

TEST_CASE("a server that stops while MPI reads a message for it ends its coordinator with an error that says so") {
  std::string output;
  // On a busy machine it may stop when the message has just arrived; then calls fail as they do to any server that is silent.
  for (int attempt = 0; attempt < 3 && !has(output, "a message to rank 3 on host "); ++attempt) {
    output = run_job(parameter_server, "stopped_in_message");
    CAPTURE(output);
    CHECK(has(output, "rank 3 is struck"));
    CHECK(has(output, ": it has been silent for 2 s"));
  }
  CAPTURE(output);
  CHECK(has(output, "a message to rank 3 on host "));
  CHECK_FALSE(has(output, "rank 0 ended: "));
}
