#include <dist/checkpoint/preemption_handler.hpp>

#include <signal.h>

#include <cstdint>

#include <doctest/doctest.h>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>
#include <support/temporary_folder.hpp>

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("a preempted program saves, and resumes after a restart (spec O03, O06)") {
  const support::TemporaryFolder folder;
  double expected = 0;
  std::uint64_t step = 0;
  int starts = 0;
  for (bool ends = true; ends; ++starts) {
    Mirrored strategy{2};
    auto value = strategy.variable<double>(dist::Shape{2}, 0.0, "value");
    step = 0;
    dist::Checkpoint checkpoint{strategy};
    checkpoint.add("value", value).add("step", step);
    dist::CheckpointManager manager{checkpoint, folder.path("checkpoints"), {.max_to_keep = 1}};
    dist::PreemptionHandler preemption{manager};
    CHECK(preemption.restored().has_value() == (starts > 0));
    CHECK(preemption.exit_code() == 42);
    CHECK(step == (starts == 0 ? 0U : 3U));
    ends = false;
    while (step < 5) {
      strategy.run([&](auto& replica) {
        for (double& element : value.component(replica)) element = element * 2 + 1;
      });
      ++step;
      if (step == 3 && starts == 0) raise(SIGTERM);
      CHECK(preemption.is_preempted() == (step == 3 && starts == 0));
      if (preemption.save_if_preempted()) {
        ends = true;
        break;
      }
    }
    if (!ends) expected = value.read(strategy.scope())[1];
  }
  CHECK(starts == 2);
  CHECK(step == 5);
  CHECK(expected == 31);  // five times from 0
}
