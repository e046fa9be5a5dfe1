#include <dist/strategy/multi_worker.hpp>
// ranks: 1 2 3 4

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <conformance/strategy.hpp>
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/range.hpp>
#include <dist/data/replica_batches.hpp>
#include <dist/multi_worker.hpp>
#include <dist/strategy/default.hpp>
#include <dist/variable/generator.hpp>
#include <support/processes.hpp>
#include <support/rank_in.hpp>

using conformance::Make;
using Workers = dist::MultiWorker<dist::RingAllReduce>;
static_assert(!dist::ReplicasShareMemory<Workers> && !dist::ReplicasShareMemory<Workers::Context>);
static_assert(dist::ReplicasShareMemory<dist::Default> && dist::ReplicasShareMemory<dist::Default::Context>);

namespace {

std::size_t my_rank() { return support::rank_in(MPI_COMM_WORLD); }
std::size_t ranks() { return support::size_of(MPI_COMM_WORLD); }

/// Destroyed after static objects of functions, such as the MPI that the strategy starts.
std::unique_ptr<Workers> kept_by_the_program;

}  // namespace

TEST_CASE("a strategy in a global object ends orderly when the program exits") {
  kept_by_the_program = std::make_unique<Workers>(2);
  const auto sums = kept_by_the_program->run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
  CHECK(kept_by_the_program->reduce(dist::max, sums) == static_cast<int>(2 * ranks()));
}

TEST_CASE("a forked child that leaves the scope of a strategy does not affect the parent") {
  auto strategy = std::make_unique<Workers>(2);
  const auto step = [](auto& replica) { return replica.all_reduce(dist::sum, 1); };
  const auto background = strategy->background();
  auto batches = std::make_unique<decltype(strategy->distribute_dataset(dist::data::range(80) | dist::data::batch(2)))>(
      strategy->distribute_dataset(dist::data::range(80) | dist::data::batch(2)));
  for (int again = 0; again < 2; ++again) {
    CHECK(strategy->reduce(dist::max, strategy->run(step)) == static_cast<int>(2 * ranks()));
    int steps = 0;
    for ([[maybe_unused]] auto&& batch : *batches) {
      support::Processes child{1, [&](std::size_t) {
                                 batches.reset();
                                 strategy.reset();
                                 return 7;
                               }};
      CHECK(child.wait() == std::vector<int>{7});
      if (++steps == 2) break;
    }
    CHECK(steps == 2);
  }
  CHECK(strategy->reduce(dist::max, strategy->run(step)) == static_cast<int>(2 * ranks()));
}

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make<Workers, 1>, Make<Workers, 2>);

TEST_CASE("every process of the launcher is a worker, and the first is the chief (spec A07, A15)") {
  Workers strategy{3};
  CHECK(strategy.num_workers() == ranks());
  CHECK(strategy.worker_rank() == my_rank());
  CHECK(strategy.is_chief() == (my_rank() == 0));
  CHECK(strategy.num_replicas_in_sync() == 3 * ranks());
  CHECK(strategy.num_local_replicas() == 3);
  const std::string line = strategy.describe();
  CAPTURE(line);
  CHECK(line.find("MultiWorker<RingAllReduce, Cpu>: ") == 0);
  CHECK(line.find(dist::concat(3 * ranks(), " replicas, 3 of them here")) != std::string::npos);
  CHECK_THROWS_AS(Workers{0}, dist::InvalidArgument);
}

TEST_CASE("a variable starts with the chief's value on every worker (spec A16, G06)") {
  Workers strategy{2};
  const auto rank = static_cast<float>(my_rank());
  const auto number = strategy.variable<float>({3}, 7 + rank);
  const auto filled = strategy.variable<float>({1000}, [&](dist::TensorView<float> all) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i) + 1000 * rank;
  });
  dist::Tensor<float> values{{5}};
  for (float& value : values.elements()) value = rank - 1;
  const auto given = strategy.variable<float>({5}, values);
  for (std::size_t local = 0; local < 2; ++local) {
    CHECK(number.component(strategy.scope(), local)[2] == 7);
    CHECK(filled.component(strategy.scope(), local)[999] == 999);
    CHECK(given.component(strategy.scope(), local)[4] == -1);
  }
}

TEST_CASE("replicas of all workers draw different numbers, and outside all draw the chief's (spec R04)") {
  Workers strategy{2};
  dist::Generator random{strategy, 42};
  dist::Default alone;
  dist::Generator of_first{alone, 42};
  CHECK(random.uniform(strategy.scope()) == of_first.uniform(alone.scope()));
  const auto drawn = strategy.run([&](auto& replica) {
    dist::Tensor<float> mine{{4}};
    random.uniform(replica, mine.elements());
    return mine;
  });
  const dist::Tensor<float> all_values = strategy.gather(drawn, 0);
  for (std::size_t i = 0; i < all_values.size(); ++i)
    for (std::size_t other = 0; other < i; ++other) CHECK(all_values[i] != all_values[other]);
  dist::Tensor<float> expected{{4}};
  of_first.uniform(alone.scope(), expected.elements());
  for (std::size_t i = 0; i < 4; ++i) CHECK(all_values[i] == expected[i]);
}

TEST_CASE("workers with different numbers of replicas are refused on every worker (spec A10)") {
  if (ranks() == 1) return;
  CHECK_THROWS_WITH_AS(Workers{my_rank() == 1 ? std::size_t{2} : std::size_t{1}},
                       doctest::Contains("worker 0 has 1, worker 1 has 2"), dist::InvalidArgument);
}

TEST_CASE("the resolver's number of devices is the number of replicas, unless the options set it (spec A10)") {
  const auto with_devices = [](std::optional<std::size_t> devices) {
    return dist::SimpleResolver{{}, std::nullopt, devices};
  };
  CHECK(Workers{with_devices(2)}.num_local_replicas() == 2);
  CHECK(Workers{with_devices(2)}.num_replicas_in_sync() == 2 * ranks());
  CHECK(Workers{with_devices(0)}.num_local_replicas() == 1);  // on the CPU
  CHECK(Workers{with_devices(std::nullopt)}.num_local_replicas() == 1);
  const dist::MultiWorkerOptions one{.replicas = 1};
  CHECK(Workers{with_devices(2), one}.num_local_replicas() == 1);
}

TEST_CASE("resolvers with different numbers of devices are refused on every worker (spec A10)") {
  if (ranks() == 1) return;
  const dist::SimpleResolver resolver{{}, std::nullopt, my_rank() == 0 ? 2 : 1};
  CHECK_THROWS_WITH_AS(Workers{resolver}, doctest::Contains("worker 0 has 2, worker 1 has 1"), dist::InvalidArgument);
}

TEST_CASE("an evaluator trains alone, and does not count as a worker (spec A09, M09)") {
  if (ranks() == 1) return;
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i + 1 < ranks(); ++i) addresses.push_back(dist::concat("10.0.0.1:", 2000 + i));
  const dist::ClusterSpec cluster{{dist::TaskType::worker, addresses}, {dist::TaskType::evaluator, {"10.0.0.1:1000"}}};
  const bool evaluates = my_rank() == 0;
  const dist::Task task =
      evaluates ? dist::Task{dist::TaskType::evaluator, 0} : dist::Task{dist::TaskType::worker, my_rank() - 1};
  Workers strategy{dist::SimpleResolver{cluster, task}};
  CHECK(strategy.task() == task);
  CHECK(strategy.num_workers() == (evaluates ? 1 : ranks() - 1));
  CHECK(strategy.worker_rank() == task.index);
  CHECK(strategy.is_chief() == (task.index == 0));
  CHECK(strategy.reduce(dist::sum, strategy.run([](auto&) { return 1; })) == static_cast<int>(strategy.num_workers()));
}

TEST_CASE("workers can replace a strategy, and two can coexist") {
  for (int round = 0; round < 5; ++round) {
    Workers strategy{1};
    CHECK(strategy.reduce(dist::sum, strategy.run([](auto&) { return 1; })) == static_cast<int>(ranks()));
  }
  Workers one{1};
  Workers two{2};
  for (int round = 0; round < 50; ++round) {
    CHECK(one.reduce(dist::sum, one.run([](auto& r) { return r.all_reduce(dist::max, 1); })) ==
          static_cast<int>(ranks()));
    CHECK(two.reduce(dist::sum, two.run([](auto& r) { return r.all_reduce(dist::sum, 1); })) ==
          static_cast<int>(4 * ranks() * ranks()));
  }
}

TEST_CASE_TEMPLATE("workers that leave after the same last collective do not disturb others, in any order", Ops,
                   dist::RingAllReduce, dist::MpiAllReduce) {
  for (std::size_t round = 0; round < 12; ++round) {
    dist::MultiWorker<Ops> one{1};
    dist::MultiWorker<Ops> two{1};
    for (dist::MultiWorker<Ops>* const strategy : {&one, &two}) {
      dist::data::AgreedEnd end{strategy->agreement(), dist::data::Cardinality::unknown(),
                                round % 2 == 0 ? dist::data::Remainder::keep : dist::data::Remainder::drop};
      for (std::size_t step = 0; end.runs(step < 2 + my_rank() && step < 3); ++step)
        CHECK(strategy->reduce(dist::sum, strategy->run([](auto&) { return 1; })) == static_cast<int>(ranks()));
    }
    if (my_rank() == round % ranks()) std::this_thread::sleep_for(std::chrono::milliseconds{round % 4});
  }
}

TEST_CASE_TEMPLATE("a worker that leaves early is named by the others, and all may create another strategy", Ops,
                   dist::RingAllReduce, dist::MpiAllReduce) {
  if (ranks() == 1) return;
  const std::size_t last = ranks() - 1;
  const std::string left = dist::concat("worker ", last, " (host ");
  const dist::MultiWorkerOptions options{.communication = {.timeout = std::chrono::seconds{60}}};
  for (const bool in_data : {false, true}) {
    {
      dist::MultiWorker<Ops> other{options};
      std::optional<dist::MultiWorker<Ops>> strategy{options};
      const auto agreement = in_data ? strategy->agreement() : dist::WorkerAgreement<dist::mpi::Agreement>{};
      if (my_rank() != last) {
        const auto call = [&] {
          if (in_data) {
            auto pass = agreement.begin();
            pass.start(false);
            static_cast<void>(pass.any());
          } else {
            static_cast<void>(strategy->reduce(dist::sum, strategy->run([](auto&) { return 1; })));
          }
        };
        try {
          call();
          FAIL("nobody noticed");
        } catch (const dist::CollectiveMismatch& error) {
          const std::string said = error.what();
          CAPTURE(said);
          CHECK(said.find(left) != std::string::npos);
          CHECK(said.find("has ended its strategy") != std::string::npos);
        }
      }
    }
    CHECK(dist::MultiWorker<Ops>{options}.num_workers() == ranks());
  }
}

TEST_CASE("a worker that fails in successive steps notifies the others each time, and all continue") {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
    Workers strategy{replicas};
    const bool fails = strategy.worker_rank() + 1 == strategy.num_workers();
    for (const char* const why : {"the loss is NaN", "the loss is infinite", "the label is 11"}) {
      const auto step = [&] {
        static_cast<void>(strategy.run([&](auto& replica) {
          if (fails && replica.local_index() == 0) throw std::runtime_error(why);
          return replica.all_reduce(dist::sum, 1);
        }));
      };
      const std::string who = dist::concat("Replica ", strategy.first_local_replica(), " failed");
      if (fails)
        CHECK_THROWS_WITH_AS(step(), doctest::Contains(who.c_str()), dist::ReplicaError);
      else
        CHECK_THROWS_WITH_AS(step(), doctest::Contains(why), dist::PeerError);
    }
    const auto ones = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
    CHECK(strategy.local_results(ones)[0] == static_cast<int>(replicas * ranks()));
  }
}

TEST_CASE("a strategy cannot be copied (spec A14)") {
  static_assert(!std::is_copy_constructible_v<Workers> && !std::is_copy_assignable_v<Workers>);
}
