// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

#include <doctest/doctest.h>

#include <conformance/strategy_methods.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>

using conformance::Make;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, Make<Workers, 1>, Make<Workers, 2>);

TEST_CASE_TEMPLATE("calls of two threads of a program are serialized (spec H20)", Strategy, Workers,
                   dist::MultiWorker<dist::NodeAllReduce>) {
  for (const std::size_t here : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(here);
    Strategy strategy{here};
    const auto totals = strategy.template variable<double, dist::OnRead, dist::Sum>({}, 0.0);
    strategy.run([&](auto& replica) { totals.component(replica)[0] = 1; });
    const auto replicas = static_cast<double>(strategy.num_replicas_in_sync());
    // Calls of the same kind are identical, so processes may make them in different order.
    const auto in_two_threads = [&](auto&& call) {
      std::atomic<int> wrong{0};
      const auto calls = [&] {
        for (int again = 0; again < 50; ++again) wrong += call() ? 0 : 1;
      };
      std::thread other(calls);
      calls();
      other.join();
      CHECK(wrong == 0);
    };
    in_two_threads([&] {
      const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1.0); });
      return std::all_of(sums.begin(), sums.end(), [&](double sum) { return sum == replicas; });
    });
    in_two_threads([&] {
      return strategy.reduce(dist::sum, dist::PerReplica<double>(here, [](std::size_t) { return 1.0; })) == replicas;
    });
    in_two_threads([&] {
      const dist::PerReplica<dist::Tensor<double>> pairs(here, [](std::size_t) {
        return dist::Tensor<double>{{2}, {3.0, 4.0}};
      });
      const dist::Tensor<double> all = strategy.gather(pairs, 0);
      return all.size() == 2 * strategy.num_replicas_in_sync() && all[all.size() - 1] == 4;
    });
    in_two_threads([&] { return totals.read(strategy.scope())[0] == replicas; });
    in_two_threads([&] {
      const auto made = strategy.template variable<double>({3}, 7.0);
      return made.read(strategy.scope())[2] == 7;
    });
  }
}
