// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include <dist/checkpoint/preemption_handler.hpp>
#include <dist/comm/ring_all_reduce.hpp>

#include "of_workers.hpp"
#include "shared_folder.hpp"

using Workers = dist::MultiWorker<dist::RingAllReduce>;
using namespace of_workers;

TEST_CASE("all workers save one checkpoint after the same step, and continue from it (spec O03, O04)") {
  const SharedFolder folder;
  for (const int start : {0, 1}) {
    CAPTURE(start);
    Workers strategy{{.replicas = 2}};
    auto value = strategy.variable<double, dist::OnRead, dist::Sum>(dist::Shape{3}, 0.0, "value");
    std::uint64_t step = 0;
    dist::Checkpoint checkpoint{strategy};
    checkpoint.add("value", value).add("step", step);
    dist::CheckpointManager manager{checkpoint, folder.path("checkpoints"), {.max_to_keep = 1}};
    dist::PreemptionHandler preemption{manager};
    CHECK(step == (start == 0 ? 0U : 4U));
    bool ends = false;
    while (!ends && step < 7) {
      strategy.run([&](auto& replica) {
        for (double& element : value.component(replica)) element += 1;
      });
      ++step;
      if (start == 0 && step == 4 && is_last()) raise(SIGTERM);
      ends = preemption.save_if_preempted();
    }
    CHECK(ends == (start == 0));
    CHECK(step == (start == 0 ? 4U : 7U));
    CHECK(manager.checkpoints().size() == 1);
    CHECK(value.read(strategy.scope())[2] == static_cast<double>(step * 2 * ranks()));
  }
}
