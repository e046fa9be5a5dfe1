// Groups of workers, each with its own strategy.
#include <dist/multi_worker.hpp>
// ranks: 1 2 3 4

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>

#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>

using Workers = dist::MultiWorker<dist::RingAllReduce>;

TEST_CASE_TEMPLATE("workers of a colour form a strategy, which runs independently", Ops, dist::RingAllReduce,
                   dist::MpiAllReduce) {
  for (const std::size_t here : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(here);
    dist::MultiWorker<Ops> all{here};
    const std::size_t color = all.worker_rank() % 2;
    dist::MultiWorker<Ops> part = all.split(color, 100 - all.worker_rank());
    const std::size_t workers = (all.num_workers() + 1 - color) / 2;
    CHECK(part.num_workers() == workers);
    CHECK(part.worker_rank() == workers - 1 - all.worker_rank() / 2);
    CHECK(part.num_replicas_in_sync() == workers * here);
    if (all.num_workers() > 1) CHECK(part.describe().find("a part of ") != std::string::npos);

    // One colour runs more steps than the other.
    auto weight = part.template variable<float, dist::OnWrite, dist::Mean>({3}, 0.0f);
    for (std::size_t step = 0; step < 10 * (color + 1); ++step)
      part.run([&](auto& replica) { weight.assign_add(replica, replica.all_reduce(dist::sum, 1.0f)); });
    const auto expected = static_cast<float>(10 * (color + 1) * workers * here);
    CHECK(weight.read(part.scope())[0] == expected);

    const auto sum = all.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
    for (const int replicas : all.local_results(sum)) CHECK(replicas == static_cast<int>(all.num_replicas_in_sync()));
  }
}

TEST_CASE("a part can be split again, down to single workers") {
  Workers all{1};
  Workers half = all.split(all.worker_rank() / 2);
  Workers alone = half.split(half.worker_rank());
  CHECK(alone.num_workers() == 1);
  const auto count = alone.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
  for (const int replicas : alone.local_results(count)) CHECK(replicas == 1);
}

TEST_CASE("a failure in one part does not affect others") {
  Workers all{2};
  Workers part = all.split(all.worker_rank() % 2);
  const auto step = [&](auto& replica) {
    if (all.worker_rank() == 0 && replica.local_index() == 1) throw std::runtime_error("in the first part");
    return replica.all_reduce(dist::sum, 1);
  };
  const std::string said = support::what_throws([&] { part.run(step); });
  if (all.worker_rank() % 2 == 0)
    CHECK(said.find("in the first part") != std::string::npos);
  else
    CHECK(said == "nothing was thrown");
  const auto sum = all.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
  for (const int replicas : all.local_results(sum)) CHECK(replicas == static_cast<int>(all.num_replicas_in_sync()));
}

TEST_CASE("a strategy is split outside replica functions, by all workers") {
  Workers all{1};
  CHECK_THROWS_AS(all.run([&](auto&) { static_cast<void>(all.split(0)); }), dist::ReplicaError);
  if (all.num_workers() == 1) return;
  const std::string said = support::what_throws<dist::CollectiveMismatch>([&] {
    if (all.worker_rank() == 0)
      static_cast<void>(all.split(0));
    else
      static_cast<void>(all.reduce(dist::sum, dist::PerReplica<int>(1)));
  });
  CHECK(said.find("split") != std::string::npos);
}
