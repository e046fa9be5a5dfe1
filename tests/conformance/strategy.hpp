// The suite of strategies (spec C01 to C15). A strategy joins in its own test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(strategies, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/workers.hpp>
#include <dist/context/input_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/strategy.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/distributed_pipelines.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/data/uploaded.hpp>

#include <doctest/doctest.h>
#include "support/allocations.hpp"
#include "support/descend.hpp"
#include "support/on_host.hpp"

namespace conformance {

/// Returns the results of `run`, one value per replica of this process, in replica order.
template <class S, class Value>
auto values_of(S& strategy, const Value& value) {
  const auto results = strategy.local_results(value);
  using Element = std::remove_cvref_t<decltype(results[0])>;
  return std::vector<Element>(results.begin(), results.end());
}

inline std::int64_t below(std::size_t count) { return static_cast<std::int64_t>(count * (count - 1) / 2); }

/// Returns the text of the exception of `run(fn)`: a replica's own, or the ReplicaError around it.
template <class S, class Fn>
std::string what_run_throws(S& strategy, Fn&& fn) {
  try {
    strategy.run(fn);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Returns the rows 0, 1, … of a dataset with one number per row, by global batch and replica of this process, as the
/// strategy distributes them.
template <class S>
std::vector<std::vector<std::vector<float>>> handed_out(S& strategy, std::size_t rows, std::size_t batch) {
  dist::Tensor<float> numbers{{rows, 1}};
  for (std::size_t i = 0; i < rows; ++i) numbers[i] = static_cast<float>(i);
  auto dataset = strategy.distribute_dataset(dist::data::tensor_slices(numbers) | dist::data::batch(batch));
  std::vector<std::vector<std::vector<float>>> batches;
  for (auto& element : dataset) {
    std::vector<std::vector<float>> received(strategy.num_local_replicas());
    strategy.run(
        [&](auto& replica, const auto& mine) {
          const auto here = support::on_host(replica.queue(), mine);
          received[replica.local_index()].assign(here.begin(), here.end());
        },
        element);
    batches.push_back(received);
  }
  return batches;
}

/// Returns the rows that local replica `local` should have of the global batch of `rows` rows, out of 8, that begins
/// with row `first`: the rows after the shares of earlier replicas. If the source is not a file, several workers divide
/// every batch into slices, assigned in rotation (spec I05, I09).
template <class S>
std::vector<float> expected_rows(const S& strategy, std::size_t first, std::size_t rows, std::size_t local) {
  const std::size_t replicas = strategy.num_replicas_in_sync();
  std::size_t begin = 0;
  std::size_t share = 0;
  if (strategy.num_workers() == 1) {
    const auto share_of = [&](std::size_t r) { return (8 + replicas - 1 - r) / replicas; };
    for (std::size_t r = 0; r < local; ++r) begin += share_of(r);
    share = share_of(local);
  } else {
    share = (rows + replicas - 1) / replicas;
    begin = share * (local * strategy.num_workers() + strategy.worker_rank());
  }
  std::vector<float> expected;
  for (std::size_t row = begin; row < std::min(rows, begin + share); ++row)
    expected.push_back(static_cast<float>(first + row));
  return expected;
}

template <class S>
void check_strategies(S& strategy) {
  static_assert(dist::Strategy<S>);
  const std::size_t replicas = strategy.num_replicas_in_sync();
  const std::size_t local_replicas = strategy.num_local_replicas();
  const std::size_t first = strategy.first_local_replica();

  SUBCASE("run calls every replica once and returns the results in replica order (spec A28, C01, C02, D06)") {
    CHECK(local_replicas * strategy.num_workers() == replicas);
    CHECK(strategy.first_local_replica() == strategy.worker_rank() * local_replicas);
    CHECK(strategy.is_chief() == (strategy.worker_rank() == 0));
    CHECK(strategy.scope().num_replicas_in_sync() == replicas);
    CHECK(&strategy.scope().strategy() == &strategy);
    std::vector<std::atomic<int>> calls(local_replicas);
    const auto ids = strategy.run([&](auto& replica) {
      ++calls[replica.local_index()];
      return replica.replica_id().index() + 100 * replica.num_replicas_in_sync();
    });
    CHECK(std::all_of(calls.begin(), calls.end(), [](const std::atomic<int>& count) { return count == 1; }));
    const auto results = values_of(strategy, ids);
    REQUIRE(results.size() == local_replicas);
    for (std::size_t local = 0; local < local_replicas; ++local)
      CHECK(results[local] == first + local + 100 * replicas);
    using Ids = std::remove_const_t<decltype(ids)>;
    static_assert(dist::is_per_replica<Ids> != std::is_same_v<std::size_t, Ids>);
  }
  SUBCASE("a replica function may return nothing, or a result that cannot be copied") {
    static_assert(std::is_void_v<decltype(strategy.run([](auto&) {}))>);
    strategy.run([](auto&) {});
    const auto owned = strategy.run([](auto& replica) { return std::make_unique<std::size_t>(replica.local_index()); });
    const auto owners = strategy.local_results(owned);
    REQUIRE(owners.size() == local_replicas);
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(*owners[local] == local);
  }
  SUBCASE("a PerReplica argument is split, and others are passed whole (spec C01)") {
    const dist::PerReplica<std::size_t> sliced(local_replicas, [](std::size_t local) { return 10 * local; });
    const std::vector<std::size_t> whole{1, 2, 3};
    const auto results = values_of(
        strategy, strategy.run([&](auto&, std::size_t mine,
                                   const std::vector<std::size_t>& all) { return &all == &whole ? mine + all[2] : 0; },
                               sliced, whole));
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(results[local] == 10 * local + 3);
    dist::PerReplica<int> changed(local_replicas);
    strategy.run([](auto& replica, int& mine) { mine = static_cast<int>(replica.local_index()) + 1; }, changed);
    for (std::size_t local = 0; local < local_replicas; ++local) CHECK(changed[local] == static_cast<int>(local) + 1);
  }
  SUBCASE("run throws the exception on every worker, and the strategy remains usable (spec C04)") {
    for (std::size_t culprit = 0; culprit < replicas; ++culprit) {
      const std::string message = what_run_throws(strategy, [&](auto& replica) {
        if (replica.replica_id().index() == culprit) throw std::runtime_error("the label is 11");
        static_cast<void>(replica.all_reduce(dist::sum, 1));
      });
      CAPTURE(message);
      CHECK(message.find("the label is 11") != std::string::npos);
      const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
      CHECK(values_of(strategy, sums) == std::vector<int>(local_replicas, static_cast<int>(replicas)));
    }
  }
  SUBCASE("replicas that catch a mismatch stay in step, in this run and later ones (spec E12)") {
    for (std::size_t odd = 0; odd < replicas; ++odd) {
      std::vector<std::size_t> wrong(local_replicas);
      strategy.run([&](auto& replica) {
        std::vector<float> values(100, 1.0F);
        try {
          if (replica.replica_id().index() == odd)
            replica.collectives().broadcast(0, std::span<float>{values});
          else
            replica.all_reduce(dist::sum, std::span<float>{values});
          wrong[replica.local_index()] += replicas > 1;
        } catch (const dist::CollectiveMismatch&) {
        }
        // If threads also communicate with other processes, these may have received the mismatch.
        try {
          wrong[replica.local_index()] += replica.all_reduce(dist::sum, 1) != static_cast<int>(replicas);
        } catch (const dist::Error&) {
          wrong[replica.local_index()] += strategy.num_workers() == 1;
        }
      });
      CHECK(wrong == std::vector<std::size_t>(local_replicas));
      for (int again = 0; again < 3; ++again) {
        const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
        CHECK(values_of(strategy, sums) == std::vector<int>(local_replicas, static_cast<int>(replicas)));
      }
    }
  }
  SUBCASE("a replica that returned early, as others caught it, does not disturb later runs (spec E12)") {
    if (strategy.num_workers() > 1) return;  // in a process, the next collective may follow any time later
    for (std::size_t early = 0; early < replicas; ++early) {
      strategy.run([&](auto& replica) {
        try {
          if (replica.replica_id().index() != early) static_cast<void>(replica.all_reduce(dist::sum, 1));
        } catch (const dist::CollectiveMismatch&) {
        }
      });
      const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
      CHECK(values_of(strategy, sums) == std::vector<int>(local_replicas, static_cast<int>(replicas)));
    }
  }
  SUBCASE("reduce combines the replicas' numbers (spec C07)") {
    const auto ids = strategy.run([](auto& r) { return static_cast<std::int64_t>(r.replica_id().index()); });
    CHECK(strategy.reduce(dist::sum, ids) == below(replicas));
    CHECK(strategy.reduce(dist::min, ids) == 0);
    CHECK(strategy.reduce(dist::max, ids) == static_cast<std::int64_t>(replicas) - 1);
    const auto halves = strategy.run([](auto& r) { return 0.5 * static_cast<double>(r.replica_id().index()); });
    CHECK(strategy.reduce(dist::mean, halves) == 0.25 * static_cast<double>(replicas - 1));
    CHECK(strategy.reduce(dist::max, 7) == 7);
  }
  SUBCASE("reduce combines tensors element by element; different shapes are refused (spec C07)") {
    const auto tensors = strategy.run([](auto& replica) {
      dist::Tensor<float> tensor{{2, 2}};
      for (std::size_t i = 0; i < 4; ++i) tensor[i] = static_cast<float>(10 * i + replica.replica_id().index());
      return tensor;
    });
    const dist::Tensor<float> total = strategy.reduce(dist::sum, tensors);
    const dist::Tensor<float> mean = strategy.reduce(dist::mean, tensors);
    CHECK(total.shape() == dist::Shape{2, 2});
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(total[i] == static_cast<float>(10 * i * replicas) + static_cast<float>(below(replicas)));
      CHECK(mean[i] == static_cast<float>(10 * i) + 0.5f * static_cast<float>(replicas - 1));
    }
    if (replicas > 1) {
      const auto ragged = strategy.run([](auto& replica) {
        return dist::Tensor<float>{{replica.replica_id().index() == 1 ? std::size_t{3} : std::size_t{2}}};
      });
      std::string message;
      try {
        static_cast<void>(strategy.reduce(dist::sum, ragged));
      } catch (const dist::ShapeMismatch& error) {
        message = error.what();
      }
      CAPTURE(message);
      CHECK(message.find("Replica 1") == 0);
      CHECK(message.find("[3] and [2]") != std::string::npos);
    }
  }
  SUBCASE("local_results of a plain value is that value (spec C15)") {
    const int plain = 5;
    const auto results = strategy.local_results(plain);
    REQUIRE(results.size() == 1);
    CHECK(&results[0] == &plain);
  }
  SUBCASE("a distributed dataset divides each global batch, including the last partial one (spec C17, I03, I04, I24)") {
    for (const std::size_t rows : {std::size_t{1}, std::size_t{5}, std::size_t{16}, std::size_t{21}}) {
      CAPTURE(rows);
      const auto batches = handed_out(strategy, rows, 8);
      REQUIRE(batches.size() == (rows + 7) / 8);
      std::size_t received = 0;
      for (std::size_t step = 0; step < batches.size(); ++step) {
        const std::size_t in_batch = std::min<std::size_t>(8, rows - 8 * step);
        for (std::size_t local = 0; local < local_replicas; ++local) {
          CHECK(batches[step][local] == expected_rows(strategy, 8 * step, in_batch, local));
          received += batches[step][local].size();
        }
      }
      CHECK(sum_over_workers(strategy, static_cast<std::int64_t>(received)) == static_cast<std::int64_t>(rows));
    }
  }
  SUBCASE("a batch has one type under every strategy, usable in a replica function (spec C17)") {
    dist::Tensor<float> features{{8, 2}};
    dist::Tensor<int> labels{{8}};
    for (std::size_t row = 0; row < 8; ++row) {
      features(row, 1) = static_cast<float>(row);
      labels[row] = static_cast<int>(10 * row);
    }
    const auto examples = dist::data::tensor_slices(features, labels) | dist::data::batch(8);
    using Space = typename S::Device::Space;
    using Batch = dist::data::BatchIn<decltype(examples), Space>;
    static_assert(std::is_same_v<dist::data::BatchIn<decltype(examples), dist::HostMemory>,
                                 dist::data::Example<dist::TensorView<const float>, dist::TensorView<const int>>>);
    static_assert(
        std::is_same_v<Batch,
                       dist::data::Example<dist::TensorView<const float, Space>, dist::TensorView<const int, Space>>>);
    auto dataset = strategy.distribute_dataset(examples);
    std::int64_t rows = 0;
    std::atomic<int> wrong{0};
    for (auto& step : dataset) {
      const auto counts = strategy.run(
          [&](auto& replica, const Batch& mine) {
            const auto x = support::on_host(replica.queue(), mine.x);
            const auto y = support::on_host(replica.queue(), mine.y);
            for (std::size_t row = 0; row < mine.x.rows(); ++row)
              if (10 * static_cast<int>(x[2 * row + 1]) != y[row]) ++wrong;
            return static_cast<std::int64_t>(mine.x.rows());
          },
          step);
      rows += strategy.reduce(dist::sum, counts);
    }
    CHECK(wrong == 0);
    CHECK(rows == 8);
  }
  SUBCASE("datasets from a function provide each replica with a whole batch, in replica order (spec C18, I17)") {
    std::size_t calls = 0;
    auto dataset = strategy.distribute_datasets_from_function([&](const dist::InputContext& context) {
      ++calls;
      CHECK(context.num_input_pipelines() == strategy.num_workers());
      CHECK(context.input_pipeline_id() == first / local_replicas);
      CHECK(context.num_replicas_in_sync() == replicas);
      dist::Tensor<float> numbers{{4 * local_replicas + 1, 1}};
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(1000 * first + i);
      return dist::data::tensor_slices(numbers) | dist::data::batch(context.get_per_replica_batch_size(2 * replicas));
    });
    CHECK(calls == 1);
    std::vector<std::size_t> rows;
    for (auto& step : dataset) {
      std::vector<std::size_t> received(local_replicas);
      strategy.run(
          [&](auto& replica, const auto& mine) {
            const std::size_t first_row = 1000 * first + 2 * (rows.size() + replica.local_index());
            received[replica.local_index()] = mine.rows();
            const auto here = support::on_host(replica.queue(), mine);
            for (std::size_t row = 0; row < here.size(); ++row) CHECK(here[row] == static_cast<float>(first_row + row));
          },
          step);
      rows.insert(rows.end(), received.begin(), received.end());
    }
    // Two full steps, and one in which only each worker's first replica has a row.
    std::vector<std::size_t> expected(2 * local_replicas, 2);
    expected.push_back(1);
    expected.resize(3 * local_replicas);
    CHECK(rows == expected);
  }
  SUBCASE("a steady step does not allocate") {
    constexpr std::size_t count = 5000;
    constexpr bool here = S::Device::Space::host_accessible;
    auto weights = strategy.template variable<float>({count}, 1.0f, "weights");
    auto total = strategy.template variable<float, dist::OnRead, dist::Sum>({}, 0.0f, "total");
    auto steps = strategy.template variable<std::int64_t, dist::OnWrite, dist::OnlyFirstReplica>({}, 0, "steps");
    dist::PerReplica<dist::Tensor<float>> gradients(
        local_replicas, [](std::size_t) -> dist::Tensor<float> { return dist::Tensor<float>{{count}}; });
    auto on_device = strategy.template buffer<float>({here ? 0 : count}, "gradients");
    const auto where_weights_are = [&](auto& replica, dist::Tensor<float>& gradient) {
      if constexpr (here) {
        return gradient.elements();
      } else {
        const auto there = on_device.component(replica);
        replica.queue().copy(gradient.elements(), there);
        return there;
      }
    };
    const auto step = [&] {
      const auto losses = strategy.run(
          [&](auto& replica, dist::Tensor<float>& gradient) {
            std::fill(gradient.elements().begin(), gradient.elements().end(), 1.0f);
            const float loss = replica.all_reduce(dist::sum, 2.0f);
            replica.all_reduce(dist::mean, gradient.elements());
            replica.reduce_and_apply(dist::mean, where_weights_are(replica, gradient), weights.component(replica),
                                     support::Descend{});
            total.assign_add(replica, loss);
            steps.assign_add(replica, 1);
            return loss;
          },
          gradients);
      return strategy.reduce(dist::mean, losses) + total.value(strategy.scope());
    };
    const auto all_values = static_cast<float>(replicas);
    CHECK(step() == 2 * all_values + 2 * all_values * all_values);
    // In one of several rounds, because threads of other libraries, such as XLA's, may allocate occasionally.
    int taken = 1;
    std::size_t allocated = 1;
    for (int round = 0; round < 3 && allocated != 0; ++round) {
      const std::size_t before = allocations;
      for (int i = 0; i < 20; ++i) static_cast<void>(step());
      taken += 20;
      allocated = allocations - before;
      if constexpr (!here) break;  // fake GPUs keep their work in lists
    }
    if constexpr (here) CHECK(allocated == 0);
    CHECK(steps.value(strategy.scope()) == taken);
    CHECK(weights.read(strategy.scope())[count - 1] == 1.0f - static_cast<float>(taken));
  }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("strategies", Maker, strategies) {
  const auto made = Maker::make();
  conformance::check_strategies(*made);
}
