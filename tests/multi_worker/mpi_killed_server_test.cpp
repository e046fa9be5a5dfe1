// A job with parameter servers under mpirun, one process of which is killed: the launcher ends all others. The test
// starts itself under mpirun to observe this.
#include <dist/cluster/mpi/roles_resolver.hpp>
#include <dist/parameter_server.hpp>
#include <dist/rpc/grpc/transport.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "support/own_mpirun.hpp"

namespace {

using namespace std::chrono_literals;
using dist::Grpc;

// A chief, two workers and a parameter server.
constexpr std::size_t chief = 0, second_worker = 2, parameter_server = 3;

bool has(const std::string& output, const std::string& part) { return output.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a process of the job" * doctest::skip()) {
  const dist::MpiRolesResolver resolver{{.parameter_servers = 1}};
  if (const char* const own = std::getenv(support::variable_of_rank);
      own != nullptr && std::string{own} == std::getenv("DIST_TEST_VICTIM"))
    std::thread([] {
      std::this_thread::sleep_for(700ms);
      std::printf("a process is killed\n");
      std::fflush(nullptr);
      raise(SIGKILL);
    }).detach();
  if (dist::serve<Grpc>(resolver)) return;
  dist::ParameterServer<Grpc> strategy{resolver};
  dist::ClusterCoordinator coordinator{strategy};
  auto weights = strategy.variable<float>({1000}, 0.0F, "weights");
  for (;;) {
    for (int i = 0; i < 20; ++i)
      coordinator.schedule(
          [](dist::WorkerContext& worker, auto& shared) {
            shared.assign_add(worker, 1.0F);  // in the memory of the server
            std::this_thread::sleep_for(5ms);
          },
          weights);
    coordinator.join();
  }
}

TEST_CASE("mpirun ends the job when a worker, a parameter server or the coordinator is killed (spec L15, L22, O01)") {
  for (const std::size_t victim : {second_worker, parameter_server, chief}) {
    CAPTURE(victim);
    const auto begin = std::chrono::steady_clock::now();
    const support::OwnMpirun job{.processes = 4,
                                 .test_case = "a process of the job",
                                 .environment = dist::concat("DIST_TEST_VICTIM=", victim),
                                 .seconds = 120,
                                 .keeps_others = false};
    const std::string output = support::output_of(job);
    CAPTURE(output);
    CHECK(has(output, "a process is killed"));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{job.seconds});
  }
}
