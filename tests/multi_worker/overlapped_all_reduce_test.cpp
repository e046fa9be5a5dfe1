#include <dist/multi_worker.hpp>
// ranks: 1 2 3
// thread levels: funneled multiple

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>

#include <doctest/doctest.h>
#include <support/allocations.hpp>
#include <support/small_network.hpp>
#include <support/what_throws.hpp>

namespace nn = dist::nn;
using Workers = dist::MultiWorker<dist::MpiAllReduce>;

namespace {

using Batch = support::SmallBatch;
using Net = support::SmallNet;
using support::compute;
using support::what_throws;

/// Options for processes that use the memory of their node, or only MPI, as on separate nodes.
dist::MultiWorkerOptions with(bool in_memory, std::size_t replicas = 1) {
  dist::MultiWorkerOptions options;
  options.hierarchical = in_memory;
  options.replicas = replicas;
  options.communication.bytes_per_pack = 1;
  options.communication.timeout = std::chrono::seconds{20};
  return options;
}

bool mpi_takes_any_thread() {
  int provided = 0;
  MPI_Query_thread(&provided);
  return provided == MPI_THREAD_MULTIPLE;
}

}  // namespace

TEST_CASE_TEMPLATE("after wait, the gradients are the sum over all replicas of all workers", Ops, dist::MpiAllReduce,
                   dist::RingAllReduce) {
  for (const bool in_memory : {true, false})
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
      CAPTURE(in_memory);
      CAPTURE(replicas);
      dist::MultiWorker<Ops> strategy{with(in_memory, replicas)};
      nn::Network<Net> net{strategy};
      nn::OverlappedAllReduce overlap{strategy, net};
      REQUIRE(overlap.buckets().size() == 6);
      CHECK(overlap.overlaps() == (strategy.num_replicas_in_sync() > 1 &&
                                   (in_memory || strategy.num_workers() == 1 || mpi_takes_any_thread())));
      std::size_t wrong = 0, differ = 0;
      for (std::size_t step = 0; step < 10; ++step) {
        const auto counts = strategy.run([&](auto& replica) {
          const Batch batch{4, replica.replica_id().index() + 10 * step};
          compute(replica, net, batch);
          const std::span<float> gradients = net.gradients().component(replica);
          std::vector<float> expected{gradients.begin(), gradients.end()};
          replica.all_reduce(dist::sum, std::span<float>{expected});
          compute(replica, net, batch, overlap.on_ready(replica));
          overlap.wait(replica);
          std::size_t count[2] = {};
          for (std::size_t i = 0; i < expected.size(); ++i) {
            count[0] += gradients[i] != doctest::Approx(expected[i]).epsilon(1e-5);
            count[1] += gradients[i] != expected[i];
          }
          return std::pair{count[0], count[1]};
        });
        for (std::size_t local = 0; local < replicas; ++local) {
          wrong += std::get<0>(counts)[local];
          differ += std::get<1>(counts)[local];
        }
      }
      CHECK(wrong == 0);
      if (in_memory) CHECK(differ == 0);  // exactly: summed in the order of replicas, then of workers
    }
}

TEST_CASE("training is the same with and without overlap (spec P08)") {
  Workers strategy{with(true, 2)};
  const auto train = [&](bool overlaps) {
    nn::Network<Net> net{strategy, 3};
    nn::Optimizer optimizer{strategy, net, nn::Adam{}};
    nn::OverlappedAllReduce overlap{strategy, net};
    for (std::size_t step = 0; step < 10; ++step)
      strategy.run([&](auto& replica) {
        const Batch batch{4, replica.replica_id().index() + 10 * step};
        if (overlaps) {
          compute(replica, net, batch, overlap.on_ready(replica));
          overlap.wait(replica);
          optimizer.apply_gradients(replica, nn::skip_aggregation);
        } else {
          compute(replica, net, batch);
          optimizer.apply_gradients(replica);
        }
      });
    const auto values = net.parameters().component(strategy.scope(), 0);
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> with_overlap = train(true), without = train(false);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < without.size(); ++i)
    wrong += with_overlap[i] != doctest::Approx(without[i]).epsilon(1e-6);
  CHECK(wrong == 0);
}

TEST_CASE("workers reduce buckets during the backward pass of earlier layers, according to the trace") {
  Workers strategy{with(true)};
  if (strategy.num_workers() == 1) return;
  nn::Network<Net> net{strategy};
  dist::Trace trace;
  nn::OverlappedAllReduce overlap{strategy, net, {}, &trace};
  REQUIRE(overlap.overlaps());
  const auto background = strategy.background();
  strategy.run([&](auto& replica) {
    auto ready = overlap.on_ready(replica);
    bool is_first = true;
    compute(replica, net, Batch{4, 1}, [&](dist::IndexRange elements) {
      ready(elements);
      // The other layers compute while both buckets of the last layer, bias and kernel, are reduced.
      if (is_first)
        while (background->done() < 2) std::this_thread::yield();
      is_first = false;
    });
    overlap.wait(replica);
  });
  std::int64_t end_of_backward = 0, first_reduction = 0;
  std::size_t reductions = 0;
  for (const dist::Trace::Event& event : trace.events()) {
    if (event.name() == "all_reduce of bucket" && reductions++ == 0) first_reduction = event.begin;
    if (event.name() == "backward of conv2d") end_of_backward = event.end;
  }
  const std::int64_t together = trace.overlap("backward of", "all_reduce of bucket");
  MESSAGE("worker " << strategy.worker_rank() << ": " << together << " ns of communication during the backward pass");
  CHECK(reductions == 6);
  CHECK(first_reduction < end_of_backward);
  CHECK(together > 0);
}

TEST_CASE("collectives of replicas during the reduction of buckets do not interfere") {
  for (const bool in_memory : {true, false})
    for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
      CAPTURE(in_memory);
      CAPTURE(replicas);
      Workers strategy{with(in_memory, replicas)};
      nn::Network<Net> net{strategy};
      nn::OverlappedAllReduce overlap{strategy, net};
      const auto total = strategy.run([&](auto& replica) {
        const Batch batch{4, 1};
        compute(replica, net, batch);
        const std::vector<float> own(net.gradients().component(replica).begin(),
                                     net.gradients().component(replica).end());
        std::size_t wrong = 0;
        for (int step = 0; step < 20; ++step) {
          auto ready = overlap.on_ready(replica);
          compute(replica, net, batch, [&](dist::IndexRange elements) {
            ready(elements);
            std::vector<float> ones(300, 1.0f);
            replica.all_reduce(dist::sum, std::span<float>{ones});
            for (const float one : ones) wrong += one != static_cast<float>(replica.num_replicas_in_sync());
          });
          overlap.wait(replica);
          const std::span<float> sums = net.gradients().component(replica);
          const auto count = static_cast<float>(replica.num_replicas_in_sync());
          for (std::size_t i = 0; i < own.size(); ++i)
            wrong += sums[i] != doctest::Approx(count * own[i]).epsilon(1e-5);
        }
        return wrong;
      });
      for (std::size_t local = 0; local < replicas; ++local) CHECK(total[local] == 0);
    }
}

TEST_CASE("a worker that fails in a step ends it for all, and all continue with new collectives") {
  for (const bool in_memory : {true, false}) {
    CAPTURE(in_memory);
    Workers strategy{with(in_memory, 2)};
    if (strategy.num_workers() == 1) return;
    nn::Network<Net> net{strategy};
    const auto step = [&](auto& overlap, bool fails) {
      strategy.run([&](auto& replica) {
        auto ready = overlap.on_ready(replica);
        std::size_t calls = 0;
        compute(replica, net, Batch{4, 1}, [&](dist::IndexRange elements) {
          ready(elements);
          if (fails && replica.replica_id().index() == 1 && ++calls == 2) throw std::runtime_error("a cosmic ray");
        });
        overlap.wait(replica);
      });
    };
    nn::OverlappedAllReduce overlap{strategy, net};
    step(overlap, false);
    const auto start = std::chrono::steady_clock::now();
    const std::string message = what_throws([&] { step(overlap, true); });
    CAPTURE(message);
    CHECK(message.find("a cosmic ray") != std::string::npos);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::minutes{1});
    const std::string again = what_throws([&] { step(overlap, false); });
    CAPTURE(again);
    CHECK(again != "nothing was thrown");
    nn::OverlappedAllReduce anew{strategy, net};
    step(anew, false);
    const auto sums = strategy.run([&](auto& replica) { return net.gradients().component(replica)[0]; });
    const float own = sums[0];
    CHECK(strategy.reduce(dist::sum, sums) ==
          doctest::Approx(own * static_cast<float>(strategy.num_replicas_in_sync())));
  }
}

TEST_CASE("after warm-up, a step allocates nothing") {
  Workers strategy{with(true)};
  nn::Network<Net> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::Adam{}};
  nn::OverlappedAllReduce overlap{strategy, net};
  const Batch batch{4, strategy.worker_rank()};
  const auto step = [&] {
    strategy.run([&](auto& replica) {
      compute(replica, net, batch, overlap.on_ready(replica));
      overlap.wait(replica);
      optimizer.apply_gradients(replica, nn::skip_aggregation);
    });
  };
  for (int i = 0; i < 3; ++i) step();
  const std::size_t before = allocations;
  for (int i = 0; i < 10; ++i) step();
  CHECK(allocations == before);
}

TEST_CASE("gradients of different runs never match, even if a worker leaves a run without its gradients") {
  for (const bool in_memory : {true, false}) {
    CAPTURE(in_memory);
    Workers strategy{with(in_memory)};
    if (strategy.num_workers() == 1) continue;
    nn::Network<Net> net{strategy};
    nn::OverlappedAllReduce overlap{strategy, net};
    const bool is_last = strategy.worker_rank() + 1 == strategy.num_workers();
    std::size_t step = 0;
    const std::string said = what_throws<std::exception>([&] {
      for (; step < 4; ++step)
        strategy.run([&](auto& replica) {
          if (is_last && step == 1) return;
          compute(replica, net, Batch{4, step}, overlap.on_ready(replica));
          overlap.wait(replica);
        });
    });
    CHECK(said.find("The workers did not issue the same collectives") != std::string::npos);
    CHECK(step == (is_last ? 2 : 1));
  }
}
