// ranks: 1 2 3 4 6
#include <dist/comm/mpi/agreement.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/data/agreement.hpp>
#include <dist/data/replica_batches.hpp>

using dist::data::AgreedEnd;
using dist::data::Cardinality;
using dist::data::Remainder;
using dist::mpi::Agreement;
using dist::mpi::Communicator;
using namespace std::chrono_literals;

namespace {

static_assert(dist::data::Agreement<Agreement>);

Communicator world() { return Communicator{dist::mpi::ref(MPI_COMM_WORLD)}; }

/// Returns the number of steps, if this worker has data for `mine` steps.
std::size_t run_steps(const Agreement& agreement, std::size_t mine, Remainder last_step,
                      Cardinality said = Cardinality::unknown()) {
  AgreedEnd end{agreement, said, last_step};
  std::size_t steps = 0;
  while (end.runs(steps < mine)) ++steps;
  return steps;
}

}  // namespace

TEST_CASE("the answer is right if the condition holds on one worker, all or none (spec I24, I25)") {
  const Communicator workers = world();
  const Agreement agreement{workers};
  Agreement::Pass pass = agreement.begin();
  for (std::size_t round = 0; round < 40; ++round) {
    const bool mine = (round >> workers.rank() & 1) != 0;
    const std::size_t holding = round & ((1U << workers.size()) - 1);
    pass.start(mine);
    CHECK(pass.any() == (holding != 0));
    if (round % 3 == 0) pass.wait();
    pass.start(!mine);
    CHECK(pass.any() == (holding != (1U << workers.size()) - 1));
  }
}

TEST_CASE("a question is done when all have answered, and several waits for it are allowed") {
  const Communicator workers = world();
  const Agreement agreement{workers};
  Agreement::Pass pass = agreement.begin();
  CHECK(pass.is_done());  // no question yet
  pass.wait();
  workers.barrier();
  if (workers.rank() == 0) pass.start(true);
  if (workers.rank() == 0 && workers.size() > 1) CHECK_FALSE(pass.is_done());
  workers.barrier();
  if (workers.rank() > 0) pass.start(true);
  pass.wait();
  CHECK(pass.is_done());
  pass.wait();
  CHECK(pass.any());
}

TEST_CASE("workers with data of different length end in the same step (spec I24, I25)") {
  const Communicator workers = world();
  const Agreement agreement{workers};
  for (int epoch = 0; epoch < 3; ++epoch) {
    CHECK(run_steps(agreement, 3 + workers.rank(), Remainder::keep) == 3 + workers.size() - 1);
    CHECK(run_steps(agreement, 3 + workers.rank(), Remainder::drop) == 3);
    CHECK(run_steps(agreement, 0, Remainder::keep) == 0);
    CHECK(run_steps(agreement, workers.rank() == 0 ? 0 : 50, Remainder::keep, Cardinality::infinite()) ==
          (workers.size() == 1 ? 0 : 50));
  }
}

TEST_CASE("a worker that has answered may wait elsewhere for a worker that needs the answer (spec I24)") {
  // The last worker has no data. The others, with data, answer and wait in memory for its part of the step: they return
  // to MPI only after it has its answer.
  const Communicator workers = world();
  const Agreement agreement{workers, {.timeout = 20s}};
  MPI_Comm node = MPI_COMM_NULL;
  DIST_MPI_CALL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  int size = 0;
  MPI_Comm_size(node, &size);
  REQUIRE(static_cast<std::size_t>(size) == workers.size());
  void* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  DIST_MPI_CALL(MPI_Win_allocate_shared(sizeof(std::atomic<int>), 1, MPI_INFO_NULL, node, &memory, &window));
  MPI_Aint bytes = 0;
  int unit = 0;
  const int last = static_cast<int>(workers.size()) - 1;
  DIST_MPI_CALL(MPI_Win_shared_query(window, last, &bytes, &unit, &memory));
  auto& came = *static_cast<std::atomic<int>*>(memory);
  if (workers.rank() + 1 == workers.size()) came = 0;
  workers.barrier();
  AgreedEnd end{agreement, Cardinality::unknown(), Remainder::keep};
  for (int step = 0; step < 20; ++step) {
    const bool has_data = workers.size() == 1 || workers.rank() + 1 < workers.size();
    REQUIRE(end.runs(has_data));
    if (workers.rank() + 1 == workers.size()) ++came;
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (came <= step && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    REQUIRE(came > step);
    if (workers.rank() == 0) std::this_thread::sleep_for(1ms);  // and is late for the next one
  }
  CHECK_FALSE(end.runs(false));
  MPI_Win_free(&window);
  MPI_Comm_free(&node);
}

TEST_CASE("loops may end early, be repeated and be nested (spec I21)") {
  const Communicator workers = world();
  const Agreement agreement{workers};
  for (std::size_t epoch = 0; epoch < 30; ++epoch) {
    AgreedEnd outer{agreement, Cardinality::unknown(), Remainder::keep};
    std::size_t steps = 0;
    while (steps < epoch % 5 && outer.runs(workers.rank() == epoch % workers.size())) {
      CHECK(run_steps(agreement, (workers.rank() + epoch) % workers.size(), Remainder::keep) == workers.size() - 1);
      ++steps;
    }
    CHECK(steps == epoch % 5);
  }
}

TEST_CASE("a missing worker is named at the deadline (spec I24)") {
  const Communicator workers = world();
  if (workers.size() == 1) return;
  {
    const Agreement agreement{workers, {.timeout = 100ms}};
    Agreement::Pass pass = agreement.begin();
    if (workers.rank() > 0) {
      pass.start(false);
      CHECK_THROWS_WITH_AS(static_cast<void>(pass.any()), doctest::Contains("no message from worker 0 on host "),
                           dist::DeadlineExceeded);
    }
    workers.barrier();
  }
  const Agreement again{workers};
  CHECK(run_steps(again, 1 + workers.rank(), Remainder::keep) == workers.size());
}

TEST_CASE("an exception in one worker's loop reaches the waiting workers (spec I24)") {
  const Communicator workers = world();
  if (workers.size() == 1) return;
  const Agreement agreement{workers, {.timeout = 10min}};
  const auto begin = std::chrono::steady_clock::now();
  try {
    AgreedEnd end{agreement, Cardinality::unknown(), Remainder::drop};
    for (int step = 0; end.runs(true); ++step)
      if (step == 2 && workers.rank() == 0) throw std::runtime_error("the source broke");
    FAIL("the loop ended");
  } catch (const dist::PeerError& error) {
    CHECK(workers.rank() != 0);
    CHECK(error.thrown() == "an exception in the loop over its data; see what that worker printed");
  } catch (const std::runtime_error& error) {
    CHECK(workers.rank() == 0);
    CHECK(std::string{error.what()} == "the source broke");
  }
  CHECK(std::chrono::steady_clock::now() - begin < 1min);
  workers.barrier();
  // The workers that caught it can continue.
  CHECK(run_steps(agreement, 1 + workers.rank(), Remainder::keep) == workers.size());
}

TEST_CASE("errors of one worker's data reach the others, truncated, only when they end the loop") {
  const Communicator workers = world();
  if (workers.size() == 1) return;
  const Agreement agreement{workers, {.timeout = 30s}};
  const std::string what = "sample 12 has no label" + std::string(5'000, '!');
  const auto fetch = [&](int step, bool again) {
    if (workers.rank() == 0 && step == 3) throw std::runtime_error(what);
    if (workers.rank() == 0 && step == 1 && !again) throw std::runtime_error("the network is slow");
    return true;
  };
  try {
    AgreedEnd end{agreement, Cardinality::unknown(), Remainder::drop};
    for (int step = 0;; ++step) {
      try {
        static_cast<void>(end.has_data([&] { return fetch(step, false); }));
      } catch (const std::runtime_error& error) {
        if (step != 1) throw;
        static_cast<void>(end.has_data([&] { return fetch(step, true); }));
      }
      const bool runs = end.runs(true);
      REQUIRE(runs);
    }
  } catch (const dist::PeerError& error) {
    CHECK(workers.rank() != 0);
    CHECK(error.rank() == 0);
    CHECK(error.thrown().starts_with("an exception in its data: sample 12 has no label!!!"));
    CHECK(error.thrown().size() == 1022);
    CHECK(agreement.thrown_by_data() == "");
  } catch (const std::runtime_error& error) {
    CHECK(workers.rank() == 0);
    CHECK(error.what() == what);
    CHECK(agreement.thrown_by_data() == what);
  }
  workers.barrier();
  CHECK(run_steps(agreement, 1 + workers.rank(), Remainder::keep) == workers.size());
  CHECK(agreement.thrown_by_data() == "");
}

TEST_CASE("if a failed worker does not begin its data, the others throw the failure that it reported to its group") {
  const Communicator workers = world();
  if (workers.size() == 1) return;
  const Agreement agreement{workers, {.timeout = 30s}};
  if (workers.rank() == 0) {
    workers.cancel("out of luck");
    agreement.cancel("it will not come");
  } else {
    Agreement::Pass pass = agreement.begin();
    pass.start(false);
    CHECK_THROWS_WITH_AS(static_cast<void>(pass.any()), doctest::Contains("out of luck"), dist::PeerError);
  }
  workers.barrier();
}

TEST_CASE("a worker that failed in a step and reported it may continue with its data (spec I24)") {
  const Communicator workers = world();
  const Agreement agreement{workers, {.timeout = 30s}};
  AgreedEnd end{agreement, Cardinality::unknown(), Remainder::drop};
  int steps = 0;
  for (; end.runs(steps < 5); ++steps) {
    if (steps != 2 || workers.rank() != 0) continue;
    workers.cancel("the label is 11");
    std::this_thread::sleep_for(50ms);  // the others wait for it, and have the notice
  }
  CHECK(steps == 5);
  if (workers.size() > 1 && workers.rank() > 0)
    CHECK_THROWS_WITH_AS(workers.barrier(), doctest::Contains("the label is 11"), dist::PeerError);
  workers.barrier();
}

TEST_CASE("the last votes of a worker count, but a worker that has left ends later waits (spec I24)") {
  const Communicator workers = world();
  const std::size_t last = workers.size() - 1;
  for (const Remainder last_step : {Remainder::keep, Remainder::drop}) {
    auto agreement = std::make_unique<Agreement>(workers, dist::mpi::AgreementOptions{.timeout = 60s});
    CHECK(run_steps(*agreement, 2 + workers.rank(), last_step) == (last_step == Remainder::keep ? 2 + last : 2));
    if (workers.rank() == last) agreement.reset();
    const std::string left = dist::concat("but worker ", last, " (host ");
    // Without further messages: a member with the answer only waits for its partners, whose messages may all have
    // arrived.
    const auto ask = [&] {
      AgreedEnd end{*agreement, Cardinality::unknown(), last_step};
      static_cast<void>(end.runs(last_step == Remainder::drop));
    };
    if (workers.rank() == 0 && last > 0)
      CHECK_THROWS_WITH_AS(ask(), doctest::Contains(left.c_str()), dist::CollectiveMismatch);
    workers.barrier();
    // The first one failed because of that, and the others learn of both at once.
    if (workers.rank() > 0 && workers.rank() < last)
      CHECK_THROWS_WITH_AS(ask(), doctest::Contains(left.c_str()), dist::CollectiveMismatch);
    workers.barrier();
  }
  // The first one has the answer and leaves; the others wait for the last one, and have the vote of the first.
  for (int round = 0; round < 20; ++round) {
    const Agreement agreement{workers, {.timeout = 60s}};
    Agreement::Pass pass = agreement.begin();
    if (workers.rank() == last && last > 0) std::this_thread::sleep_for(5ms);
    pass.start(workers.rank() == 0);
    CHECK(pass.any());
    if (workers.rank() > 0) pass.wait();
  }
}

TEST_CASE("a lost process ends the wait (spec O01)") {
  const Communicator workers = world();
  if (workers.size() == 1) return;
  dist::PeerHealth health;
  const Agreement agreement{workers, {.timeout = 30s, .health = &health}};
  Agreement::Pass pass = agreement.begin();
  if (workers.rank() > 0) {
    health.lose({0, "there", "the test says so", false});
    pass.start(false);
    CHECK_THROWS_AS(static_cast<void>(pass.any()), dist::Unavailable);
  }
  workers.barrier();
}

TEST_CASE("an agreement may outlive its communicator, and may be copied") {
  auto agreement = [] { return Agreement{world()}; }();
  const Agreement copy = agreement;
  CHECK(run_steps(copy, 2, Remainder::keep) == 2);
  Agreement::Pass pass = copy.begin();
  Agreement::Pass other = agreement.begin();
  pass = std::move(other);
  pass.start(true);
  CHECK(pass.any());
}
