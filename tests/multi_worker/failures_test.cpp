// A failed or late worker, as seen by all workers: none waits until the deadline, and all continue together if nothing
// is broken.
#include <dist/multi_worker.hpp>
// ranks: 2 3 4

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/map.hpp>
#include <dist/data/range.hpp>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>

#include "of_workers.hpp"

using namespace std::chrono_literals;
using Ring = dist::MultiWorker<dist::RingAllReduce>;
using of_workers::failure;
using of_workers::has;
using of_workers::is_last;
using of_workers::meet;
using of_workers::my_rank;
using of_workers::ranks;
using support::what_throws;

namespace {

/// The name of the host in the library, if not the real one.
std::string other_host;

}  // namespace

extern "C" int gethostname(char* name, std::size_t size) noexcept {
  char real[256] = {};
  if (other_host.empty()) {
    const int file = open("/proc/sys/kernel/hostname", O_RDONLY | O_CLOEXEC);
    const ssize_t length = read(file, real, sizeof real - 1);
    close(file);
    real[length > 0 ? length - 1 : 0] = '\0';
  }
  std::strncpy(name, other_host.empty() ? real : other_host.c_str(), size);
  return 0;
}

namespace {

/// During its lifetime, half of the workers appear to run on another node.
class TwoNodes {
 public:
  TwoNodes() { other_host = 2 * my_rank() < ranks() ? "here" : "there"; }
  TwoNodes(const TwoNodes&) = delete;
  TwoNodes& operator=(const TwoNodes&) = delete;
  ~TwoNodes() { other_host.clear(); }
};

/// A wait until this deadline fails the test.
constexpr std::chrono::seconds deadline = 20s;
dist::MultiWorkerOptions with(std::size_t replicas, bool in_memory = true) {
  return {.replicas = replicas, .hierarchical = in_memory, .communication = {.timeout = deadline}};
}
/// Checks that less time than the deadline has passed, with a margin for a busy machine.
class Soon {
 public:
  [[nodiscard]] bool holds() const { return std::chrono::steady_clock::now() - begin_ < deadline / 2; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

TEST_CASE("the deadline of one call ends the wait for a late worker (spec H13, H15)") {
  for (const bool in_memory : {true, false})
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
      CAPTURE(in_memory);
      CAPTURE(replicas);
      Ring strategy{with(replicas, in_memory)};
      const auto reduce = [&](std::chrono::milliseconds timeout) {
        strategy.run([&](auto& replica) {
          std::vector<float> values(3, 1);
          const std::span<float> tensor{values};
          replica.all_reduce(dist::sum, std::span<const std::span<float>>{&tensor, 1}, {.timeout = timeout});
          if (values[2] != static_cast<float>(replica.num_replicas_in_sync())) throw std::logic_error("a wrong sum");
        });
      };
      const auto begin = std::chrono::steady_clock::now();  // before any worker waits
      reduce(deadline);
      if (is_last()) meet();  // until the others have timed out
      const Soon soon;
      const std::string said = failure([&] { reduce(200ms); });
      CHECK(has(said, "DeadlineExceeded"));
      CHECK(has(said, dist::concat("orker ", ranks() - 1, " (host ")));
      CHECK(soon.holds());
      if (is_last()) continue;
      CHECK(std::chrono::steady_clock::now() - begin >= 200ms);
      meet();
    }
}

TEST_CASE("collectives between workers accept a separate deadline (spec H13)") {
  for (const bool in_memory : {true, false}) {
    CAPTURE(in_memory);
    Ring strategy{with(1, in_memory)};
    if (is_last()) meet();
    const Soon soon;
    float value = 1;
    const std::string said = failure([&] {
      strategy.workers().with_timeout(200ms).all_reduce(dist::sum, std::span<float>{&value, 1});
    });
    CHECK(soon.holds());
    if (is_last()) continue;  // it may find all data in the memory of the waiting workers
    CHECK(has(said, "DeadlineExceeded"));
    CHECK(has(said, dist::concat("orker ", ranks() - 1, " (host ")));
    meet();
  }
}

TEST_CASE("the maximum deadline does not overflow (spec H13)") {
  for (const bool in_memory : {true, false}) {
    dist::MultiWorkerOptions options = with(2, in_memory);
    options.communication.timeout = std::chrono::nanoseconds::max();
    Ring strategy{options};
    if (is_last()) std::this_thread::sleep_for(100ms);  // the others wait, and read the clock
    const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
    CHECK(strategy.reduce(dist::max, sums) == static_cast<int>(2 * ranks()));
  }
}

TEST_CASE("options that contradict the implementation in the type are rejected (spec H14)") {
  dist::MultiWorkerOptions options = with(1);
  options.communication.implementation = dist::Implementation::nccl;
  CHECK_THROWS_WITH_AS(Ring{options},
                       "The options of a strategy select an implementation of collectives (the type of the strategy "
                       "selects it). Name the implementation in the type, as in Mirrored<RingAllReduce>.",
                       dist::InvalidArgument);
}

TEST_CASE("a worker that fails in steps without collectives delays no other's next batch (spec O01)") {
  for (const bool in_memory : {true, false}) {
    CAPTURE(in_memory);
    Ring strategy{with(1, in_memory)};
    auto batches = strategy.distribute_dataset(dist::data::range(32) | dist::data::batch(4));
    const Soon soon;
    std::size_t steps = 0;
    std::size_t failures = 0;
    for ([[maybe_unused]] auto&& batch : batches) {
      ++steps;
      const std::string said = failure([&] {
        strategy.run([](auto&) {
          if (is_last()) throw std::runtime_error("no prediction for this");
        });
      });
      failures += said == "no prediction for this";
      if (is_last()) std::this_thread::sleep_for(20ms);  // the others wait for its next batch, and read its notice
    }
    CHECK(steps == 8);
    CHECK(failures == (is_last() ? 8 : 0));
    // It delays no collective, either: the next one is the same on all.
    for (int step = 0; step < 3; ++step) {
      const auto least = strategy.run([&](auto& replica) { return replica.all_reduce(dist::min, step); });
      const auto most = strategy.run([&](auto& replica) { return replica.all_reduce(dist::max, step); });
      CHECK(strategy.local_results(least)[0] == step);
      CHECK(strategy.local_results(most)[0] == step);
    }
    CHECK(soon.holds());
  }
}

TEST_CASE_TEMPLATE("workers that catch the same failure in the same step continue with their data", Ops,
                   dist::MpiAllReduce, dist::RingAllReduce) {
  dist::MultiWorker<Ops> strategy{with(2, false)};
  auto batches = strategy.distribute_dataset(dist::data::range(64) | dist::data::batch(8));
  const dist::PerReplica<dist::Tensor<float>> unequal(
      2, [](std::size_t local) -> dist::Tensor<float> { return dist::Tensor<float>{{3 + local}}; });
  const Soon soon;
  std::size_t steps = 0;
  for ([[maybe_unused]] auto&& batch : batches) {
    if (is_last()) std::this_thread::sleep_for(30ms);
    if (steps++ % 3 != 2) continue;
    CHECK(has(failure([&] { static_cast<void>(strategy.reduce(dist::sum, unequal)); }), "ShapeMismatch"));
    std::this_thread::sleep_for(30ms);  // until the notices of the others have arrived
  }
  CHECK(steps == 8);
  CHECK(soon.holds());
  const auto ones = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
  CHECK(strategy.local_results(ones)[0] == static_cast<int>(2 * ranks()));
}

TEST_CASE("an initial value that fails on one worker is reported to the others, whatever was thrown") {
  for (const bool in_memory : {true, false})
    for (const std::size_t failing : {std::size_t{0}, ranks() - 1}) {
      CAPTURE(in_memory);
      CAPTURE(failing);
      Ring strategy{with(1, in_memory)};
      const Soon soon;
      const std::string said = failure([&] {
        static_cast<void>(strategy.variable<float>({4}, [&](dist::TensorView<float> values) {
          if (my_rank() == failing) throw 7;
          for (float& value : values.elements()) value = 1;
        }));
      });
      if (my_rank() == failing)
        CHECK(said == "the number 7");
      else
        CHECK(has(said, dist::concat("PeerError: Worker ", failing, " on host ")));
      CHECK(soon.holds());
      const auto variable = strategy.variable<float>({4}, 3.0F);
      CHECK(variable.component(strategy.scope(), 0)[3] == 3);
    }
}

TEST_CASE("even without checks of calls, a failed worker is reported before the deadline (spec O01)") {
  dist::MultiWorkerOptions options = with(1, false);
  options.checks = dist::CollectiveChecks::none;
  Ring strategy{options};
  const auto step = [&](bool fails) {
    strategy.run([&](auto& replica) {
      std::vector<float> values(100'000, 1);
      if (fails) throw std::runtime_error("the label is 11");
      replica.all_reduce(dist::sum, std::span<float>{values});
    });
  };
  step(false);
  const Soon soon;
  const std::string said = failure([&] { step(is_last()); });
  CHECK(has(said, "the label is 11"));
  CHECK(said.starts_with("PeerError") != is_last());
  CHECK(soon.holds());
  meet();  // a worker that leaves early would be lost to those still waiting
}

TEST_CASE("a worker that fails during a background collective blocks no other, on any node") {
  const TwoNodes nodes;
  Ring strategy{with(1)};
  REQUIRE(strategy.describe().find("on 2 nodes") != std::string::npos);
  std::vector<float> gradients(1000, 1);
  const auto background = strategy.background();
  const Soon soon;
  const std::string said = failure([&] {
    strategy.run([&](auto& replica) {
      const auto reduction = background->start_all_reduce(dist::sum, std::span<float>{gradients});
      if (my_rank() == 1) {
        std::this_thread::sleep_for(50ms);
        throw std::runtime_error("the loss is NaN");
      }
      static_cast<void>(replica.all_reduce(dist::sum, 1.0F));
      reduction.wait();
    });
  });
  CHECK(has(said, "the loss is NaN"));
  CHECK(soon.holds());
  meet();
}

TEST_CASE("a failure after the last collective of a run is local, and all stay in the same step (spec O01)") {
  for (const bool in_memory : {true, false})
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}})
      for (const std::size_t failing : {std::size_t{0}, ranks() - 1}) {
        CAPTURE(in_memory);
        CAPTURE(replicas);
        CAPTURE(failing);
        Ring strategy{with(replicas, in_memory)};
        const Soon soon;
        for (int step = 0; step < 6; ++step) {
          int least = -1;
          int most = -1;
          const std::string said = failure([&] {
            strategy.run([&](auto& replica) {
              const int smallest = replica.all_reduce(dist::min, step);
              const int greatest = replica.all_reduce(dist::max, step);
              if (replica.local_index() == 0) {
                least = smallest;
                most = greatest;
              }
              if (my_rank() == failing && step % 2 == 1) throw std::runtime_error("bad batch");
            });
          });
          CHECK(said == (my_rank() == failing && step % 2 == 1 ? "bad batch" : "nothing was thrown"));
          CHECK(least == step);
          CHECK(most == step);
        }
        CHECK(strategy.reduce(dist::max, my_rank()) == ranks() - 1);
        CHECK(soon.holds());
      }
}

TEST_CASE("failures of several workers, in the same or different runs, leave all in the same step (spec O01)") {
  for (const bool in_memory : {true, false}) {
    CAPTURE(in_memory);
    Ring strategy{with(1, in_memory)};
    const Soon soon;
    // Worker 0 fails after the collective in steps 0, 4 and 8; the last worker before it in steps 1, 5 and 9.
    for (int step = 0; step < 10; ++step) {
      const std::string said = failure([&] {
        strategy.run([&](auto& replica) {
          if (step % 4 == 1 && is_last()) throw std::runtime_error("no data");
          const int least = replica.all_reduce(dist::min, step);
          const int most = replica.all_reduce(dist::max, step);
          if (least != step || most != step) throw std::logic_error("not in the same step");
          if (step % 4 == 0 && my_rank() == 0) throw std::runtime_error("no log");
        });
      });
      if (step % 4 == 1)
        CHECK(has(said, is_last() ? "no data" : "PeerError"));
      else
        CHECK(said == (step % 4 == 0 && my_rank() == 0 ? "no log" : "nothing was thrown"));
    }
    CHECK(strategy.reduce(dist::max, my_rank()) == ranks() - 1);
    CHECK(soon.holds());
  }
}

TEST_CASE("a collective in a run never matches one outside or in another run (spec E12)") {
  for (const bool in_memory : {true, false}) {
    CAPTURE(in_memory);
    const auto step = [](auto& replica) { return replica.all_reduce(dist::sum, 1); };
    {
      // One worker has one step more, while the others continue to a reduction outside: both sum one number.
      Ring strategy{with(1, in_memory)};
      const Soon soon;
      for (int i = 0; i < 2; ++i) static_cast<void>(strategy.run(step));
      const std::string said = failure([&] {
        if (is_last()) static_cast<void>(strategy.run(step));
        static_cast<void>(strategy.reduce(dist::sum, dist::PerReplica<int>(1)));
      });
      CHECK(has(said, "The workers did not issue the same collectives"));
      CHECK(has(said, "outside run, number 1 of the runs and calls since the last collective"));
      CHECK(has(said, "in a run, number 1 of the runs and calls since the last collective"));
      CHECK(has(said, "use strategy.run_here for runs of one process"));
      CHECK(soon.holds());
    }
    {
      Ring strategy{with(1, in_memory)};
      const std::string said = failure([&] {
        static_cast<void>(strategy.run(step));
        if (is_last())
          static_cast<void>(strategy.run(step));
        else
          static_cast<void>(strategy.run([&](auto& replica) { return step(replica); }));
        // Two collectives in one run, against two runs with one collective each on another worker.
        strategy.run([&](auto& replica) {
          static_cast<void>(step(replica));
          if (!is_last()) static_cast<void>(step(replica));
        });
        if (is_last()) static_cast<void>(strategy.run(step));
      });
      CHECK(has(said, "in the same run as the last collective"));
    }
    {
      // A different number of runs is also rejected after a failure.
      Ring strategy{with(1, in_memory)};
      const Soon soon;
      std::size_t wrong = 0;
      std::size_t refused = 0;
      for (int number = 0; number < 3; ++number) {
        if (my_rank() == 0) strategy.run([](auto&) {});
        const std::string said = failure([&] {
          strategy.run([&](auto& replica) {
            if (is_last() && number == 0) throw std::runtime_error("no data");
            wrong += replica.all_reduce(dist::max, number) != number;
          });
        });
        refused += said != "nothing was thrown";
      }
      CHECK(wrong == 0);
      CHECK(refused >= 1);
      CHECK(soon.holds());
      meet();
    }
  }
}

TEST_CASE_TEMPLATE("a worker that leaves a run without its collective is rejected at the next one (spec E12)", Ops,
                   dist::RingAllReduce, dist::MpiAllReduce, dist::TreeAllReduce, dist::HalvingDoublingAllReduce,
                   dist::AutoAllReduce) {
  for (const bool in_memory : {true, false})
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
      CAPTURE(in_memory);
      CAPTURE(replicas);
      dist::MultiWorker<Ops> strategy{with(replicas, in_memory)};
      const Soon soon;
      int step = 0;
      const std::string said = failure([&] {
        for (; step < 4; ++step)
          strategy.run([&](auto& replica) {
            if (is_last() && step == 1) return;
            if (replica.all_reduce(dist::max, step) != step) throw std::logic_error("the value of another run");
          });
      });
      CHECK(has(said, "The workers did not issue the same collectives"));
      CHECK(has(said, "in a run, number 1 of the runs and calls since the last collective"));
      CHECK(has(said, "in a run, number 2 of the runs and calls since the last collective"));
      CHECK(step == (is_last() ? 2 : 1));
      CHECK(soon.holds());
      meet();
    }
}

TEST_CASE("runs and errors of a single process are local, and have no collectives") {
  for (const bool in_memory : {true, false})
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
      CAPTURE(in_memory);
      CAPTURE(replicas);
      Ring strategy{with(replicas, in_memory)};
      const Soon soon;
      for (std::size_t round = 0; round < 3; ++round) {
        std::size_t calls = 0;
        for (std::size_t batch = 0; batch < my_rank() + round; ++batch)
          for (const std::size_t local :
               strategy.run_here([](auto& replica) { return replica.local_index() + 1; }).values())
            calls += local;
        CHECK(calls == (my_rank() + round) * replicas * (replicas + 1) / 2);
        if (is_last()) {
          CHECK(failure([&] { strategy.run_here([](auto&) { throw std::runtime_error("no data"); }); }) == "no data");
          CHECK(has(failure([&] {
                      strategy.run_here([](auto& replica) { static_cast<void>(replica.all_reduce(dist::sum, 1)); });
                    }),
                    "all_reduce was called in run_here (the other processes do not share this run)"));
        }
        const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
        CHECK(strategy.reduce(dist::max, sums) == static_cast<int>(ranks() * replicas));
      }
      CHECK(soon.holds());
      meet();
    }
}

TEST_CASE("a worker that ends after a failure is named with it, however late the others notice (spec O01)") {
  for (const bool in_memory : {true, false}) {
    CAPTURE(in_memory);
    std::optional<Ring> strategy{with(1, in_memory)};
    const Soon soon;
    const std::string said = failure([&] {
      const Ring* const ends = &*strategy;
      static_cast<void>(ends);
      try {
        for (int step = 0; step < 3; ++step)
          strategy->run([&](auto& replica) {
            static_cast<void>(replica.all_reduce(dist::sum, 1));
            if (is_last() && step == 1) throw std::runtime_error("the log is full");
          });
      } catch (...) {
        struct EndsWithIt {
          std::optional<Ring>& strategy;
          ~EndsWithIt() { strategy.reset(); }
        };
        if (!is_last()) throw;
        const EndsWithIt scope{strategy};
        throw;
      }
    });
    CHECK(has(said, "the log is full"));
    CHECK(said.starts_with("PeerError") != is_last());
    CHECK(soon.holds());
    meet();
  }
}

TEST_CASE_TEMPLATE(
    "an exception in the data of one worker is reported to the others, in a collective or before their next batch", Ops,
    dist::MpiAllReduce, dist::RingAllReduce) {
  for (const bool with_collectives : {false, true}) {
    CAPTURE(with_collectives);
    std::optional<dist::MultiWorker<Ops>> strategy{with(1, std::is_same_v<Ops, dist::RingAllReduce>)};
    // An exception that leaves the scope of the strategy destroys it on the failing worker.
    struct EndsWithIt {
      std::optional<dist::MultiWorker<Ops>>& strategy;
      ~EndsWithIt() { strategy.reset(); }
    };
    auto batches =
        strategy->distribute_dataset(dist::data::range(48) | dist::data::map([fails = is_last()](auto number) {
                                       if (fails && number >= 24) throw std::runtime_error("number 24 is torn");
                                       return number;
                                     }) |
                                     dist::data::batch(4));
    const Soon soon;
    const std::string said = failure([&] {
      try {
        for ([[maybe_unused]] auto&& batch : batches)
          if (with_collectives)
            strategy->run([](auto& replica) { static_cast<void>(replica.all_reduce(dist::sum, 1)); });
      } catch (...) {
        if (!is_last() || !with_collectives) throw;
        const EndsWithIt scope{strategy};
        throw;
      }
    });
    CHECK(has(said, "number 24 is torn"));
    CHECK(said.starts_with("PeerError") != is_last());
    CHECK(soon.holds());
    if (!with_collectives) {  // after all have caught it, they continue together
      const auto ones = strategy->run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
      CHECK(strategy->local_results(ones)[0] == static_cast<int>(ranks()));
    }
    meet();
  }
}

TEST_CASE_TEMPLATE(
    "values with different structures are rejected in and out of replica functions, without consequences", Ops,
    dist::MpiAllReduce, dist::RingAllReduce) {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}})
    for (const bool in_memory : {true, false}) {
      CAPTURE(in_memory);
      CAPTURE(replicas);
      dist::MultiWorker<Ops> strategy{with(replicas, in_memory)};
      const Soon soon;
      const auto total = static_cast<int>(replicas * ranks());
      const auto sum_is_right = [&] {
        const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
        return strategy.local_results(sums)[0] == total && strategy.reduce(dist::max, sums) == total;
      };
      // An optional with a value on all workers but the last.
      const auto some = [&](int value) { return is_last() ? std::optional<int>{} : std::optional{value}; };
      const std::string inside = failure([&] {
        strategy.run([&](auto& replica) { static_cast<void>(replica.all_reduce(dist::sum, std::tuple{some(1), 2})); });
      });
      CHECK(has(inside, "The replicas gave values with different structures (on replica 0 optional 0 has a value"));
      CHECK(sum_is_right());
      const std::string outside = failure([&] {
        const auto given = strategy.run([&](auto&) { return std::tuple{some(1), 2}; });
        static_cast<void>(strategy.reduce(dist::sum, given));
      });
      CHECK(has(outside, "The workers gave values with different structures (on worker 0 optional 0 has a value"));
      CHECK(sum_is_right());
      // A structure with an extra member on one worker: the next sum is correct.
      const std::string longer = failure([&] {
        strategy.run([&](auto& replica) {
          if (is_last())
            static_cast<void>(replica.all_reduce(dist::sum, std::tuple{1, 2.0F}));
          else
            static_cast<void>(replica.all_reduce(dist::sum, std::tuple{1}));
        });
      });
      CHECK(has(longer, "part of values with a different structure"));
      CHECK(sum_is_right());
      const std::string of_reduce = failure([&] {
        if (is_last())
          static_cast<void>(strategy.reduce(dist::sum, std::tuple{1, 2.0F}));
        else
          static_cast<void>(strategy.reduce(dist::sum, std::tuple{1}));
      });
      CHECK(has(of_reduce, "part of values with a different structure"));
      CHECK(sum_is_right());
      CHECK(soon.holds());
    }
}
