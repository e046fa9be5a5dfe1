// One worker with GPUs, between which NCCL reduces. A Job (job.hpp) starts several:
//
//     faults_gpu_worker POLICY REPLICAS FAULT VICTIM TIMEOUT START
//
// POLICY is node, or flat: without the memory of the node. FAULT happens to the worker VICTIM, in its NCCL, once all have
// agreed on a collective, so that the GPUs of the others wait for its own: "kill" or "stop", after three steps. The rest is as
// in worker.cpp.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <dist/core/shape.hpp>
#include <dist/multi_worker.hpp>
#include <support/fake_nccl/machine.hpp>

#include "log.hpp"

namespace {

using faults::Log;

int signal_of_fault = 0;

void strike() {
  Log::write("fault", dist::text(static_cast<long>(getpid())).c_str());
  kill(getpid(), signal_of_fault);
}

void train(const dist::MultiWorkerOptions& options) {
  dist::MultiWorker<dist::NcclAllReduce> strategy{options};
  for (const std::string& device : strategy.worker_devices()) Log::write("device", device.c_str());
  const auto ones = strategy.buffer<float>(dist::Shape{1000});
  for (int step = 0; step < 5; ++step) {
    if (step == 3 && signal_of_fault != 0) fake_nccl::before_call("ncclAllReduce", &strike);
    strategy.run([&](auto& replica) {
      const auto mine = ones.component(replica);
      replica.queue().fill(mine, 1.0F);
      replica.all_reduce(dist::sum, mine);
      std::vector<float> sums(mine.size());
      replica.queue().copy(mine, std::span<float>{sums});
      replica.queue().wait();
      for (const float sum : sums)
        if (sum != static_cast<float>(replica.num_replicas_in_sync())) throw std::logic_error("a wrong sum");
    });
  }
}

int say(const char* type, const char* what) {
  Log::write("error", dist::text(type, ": ", what).c_str());
  Log::write("left", dist::text(fake_nccl::live_communicators()).c_str());
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const path = std::getenv("DIST_FAULTS_LOG");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK") != nullptr ? std::getenv("OMPI_COMM_WORLD_RANK")
                                                                          : std::getenv("DIST_FAULTS_RANK");
  if (argc != 7 || path == nullptr || rank == nullptr) return 2;
  Log::open(path, std::stoul(rank));
  setenv("DIST_FAKE_CUDA", "8 eager", 1);
  if (std::stoul(rank) == std::stoul(argv[4]))
    signal_of_fault = argv[3] == std::string_view{"kill"} ? SIGKILL : SIGSTOP;
  dist::MultiWorkerOptions options;
  options.hierarchical = argv[1] != std::string_view{"flat"};
  options.replicas = std::stoul(argv[2]);
  options.pinned = false;  // the test has more processes than processors
  options.communication.timeout = std::chrono::milliseconds{std::stol(argv[5])};
  options.start_timeout = std::chrono::milliseconds{std::stol(argv[6])};
  try {
    try {
      train(options);
    } catch (const dist::ReplicaError& error) {
      std::rethrow_exception(error.cause());
    }
  } catch (const dist::Unavailable& error) {
    return say("Unavailable", error.what());
  } catch (const dist::DeadlineExceeded& error) {
    return say("DeadlineExceeded", error.what());
  } catch (const std::exception& error) {
    return say("exception", error.what());
  }
  Log::write("done");
  return 0;
}
