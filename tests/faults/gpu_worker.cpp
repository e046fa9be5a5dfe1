// One worker with GPUs and reduction by NCCL. A Job (job.hpp) starts several:
//
//     faults_gpu_worker POLICY REPLICAS FAULT VICTIM TIMEOUT START
//
// POLICY is node, or flat: without the memory of the node. FAULT happens to the worker VICTIM in its NCCL, once all
// have agreed on a collective, so that the GPUs of the others wait for it: "kill" or "stop", after three steps. For the
// rest, see worker.cpp.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <dist/core/shape.hpp>
#include <dist/multi_worker.hpp>
#include <support/fake_nccl/machine.hpp>

#include "log.hpp"
#include "worker_plan.hpp"

namespace {

using faults::Log;

int signal_of_fault = 0;

void strike() {
  Log::write("fault", dist::concat(static_cast<long>(getpid())).c_str());
  kill(getpid(), signal_of_fault);
}

void train(const faults::WorkerPlan& plan) {
  dist::MultiWorker<dist::NcclAllReduce> strategy{plan.options()};
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

}  // namespace

int main(int argc, char** argv) {
  const auto plan = faults::plan_of(argc, argv);
  if (!plan) return 2;
  setenv("DIST_FAKE_CUDA", "8 eager", 1);
  if (plan->is_victim()) signal_of_fault = plan->fault == "kill" ? SIGKILL : SIGSTOP;
  return faults::run(
      *plan, [&] { train(*plan); }, [] { Log::write("left", dist::concat(fake_nccl::live_communicators()).c_str()); });
}
