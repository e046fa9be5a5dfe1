// What every strategy does (spec C01 to C15). A strategy joins in its own test file with one line:
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
#include <dist/context/input_context.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/strategy/interface.hpp>

#include <doctest/doctest.h>
#include "support/allocations.hpp"

namespace conformance {

/// Whatever `run` returned, one value per replica, in replica order.
template <class S, class Value>
auto values_of(S& strategy, const Value& value) {
  const auto results = strategy.local_results(value);
  using Element = std::remove_cvref_t<decltype(results[0])>;
  return std::vector<Element>(results.begin(), results.end());
}

inline std::int64_t below(std::size_t count) { return static_cast<std::int64_t>(count * (count - 1) / 2); }

/// The text of what `run(fn)` throws, whether a replica's own exception or the ReplicaError around it.
template <class S, class Fn>
std::string what_run_throws(S& strategy, Fn&& fn) {
  try {
    strategy.run(fn);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// The rows 0, 1, … of a dataset with one number per row, by global batch and replica, as the strategy hands them out.
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
          received[replica.local_index()].assign(mine.data(), mine.data() + mine.size());
        },
        element);
    batches.push_back(received);
  }
  return batches;
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("strategies", Maker, strategies) {
  using namespace conformance;
  const auto made = Maker::make();
  auto& strategy = *made;
  using S = std::remove_reference_t<decltype(strategy)>;
  static_assert(dist::Strategy<S>);
  const std::size_t replicas = strategy.num_replicas_in_sync();

  SUBCASE("run calls every replica once and gives the results in replica order (spec A28, C01, C02, D06)") {
    CHECK(strategy.num_local_replicas() == replicas);
    CHECK(strategy.scope().num_replicas_in_sync() == replicas);
    CHECK(&strategy.scope().strategy() == &strategy);
    std::vector<std::atomic<int>> calls(replicas);
    const auto ids = strategy.run([&](auto& replica) {
      ++calls[replica.local_index()];
      return replica.replica_id().index() + 100 * replica.num_replicas_in_sync();
    });
    CHECK(std::all_of(calls.begin(), calls.end(), [](const std::atomic<int>& count) { return count == 1; }));
    const auto results = values_of(strategy, ids);
    REQUIRE(results.size() == replicas);
    for (std::size_t r = 0; r < replicas; ++r) CHECK(results[r] == r + 100 * replicas);
    using Ids = std::remove_const_t<decltype(ids)>;
    static_assert(dist::is_per_replica<Ids> != std::is_same_v<std::size_t, Ids>);
  }
  SUBCASE("a replica function may return nothing, or what cannot be copied") {
    static_assert(std::is_void_v<decltype(strategy.run([](auto&) {}))>);
    strategy.run([](auto&) {});
    const auto owned = strategy.run([](auto& replica) { return std::make_unique<std::size_t>(replica.local_index()); });
    const auto owners = strategy.local_results(owned);
    REQUIRE(owners.size() == replicas);
    for (std::size_t r = 0; r < replicas; ++r) CHECK(*owners[r] == r);
  }
  SUBCASE("a PerReplica argument is sliced, others are handed over whole (spec C01)") {
    const dist::PerReplica<std::size_t> sliced(replicas, [](std::size_t r) { return 10 * r; });
    const std::vector<std::size_t> whole{1, 2, 3};
    const auto results = values_of(
        strategy, strategy.run([&](auto&, std::size_t mine,
                                   const std::vector<std::size_t>& all) { return &all == &whole ? mine + all[2] : 0; },
                               sliced, whole));
    for (std::size_t r = 0; r < replicas; ++r) CHECK(results[r] == 10 * r + 3);
    dist::PerReplica<int> changed(replicas);
    strategy.run([](auto& replica, int& mine) { mine = static_cast<int>(replica.local_index()) + 1; }, changed);
    for (std::size_t r = 0; r < replicas; ++r) CHECK(changed[r] == static_cast<int>(r) + 1);
  }
  SUBCASE("an exception comes out of run, and the strategy works on (spec C04)") {
    for (std::size_t culprit = 0; culprit < replicas; ++culprit) {
      const std::string message = what_run_throws(strategy, [&](auto& replica) {
        if (replica.local_index() == culprit) throw std::runtime_error("the label is 11");
        static_cast<void>(replica.all_reduce(dist::sum, 1));
      });
      CAPTURE(message);
      CHECK(message.find("the label is 11") != std::string::npos);
      const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
      CHECK(values_of(strategy, sums) == std::vector<int>(replicas, static_cast<int>(replicas)));
    }
  }
  SUBCASE("reduce combines the replicas' numbers (spec C07)") {
    const auto ids = strategy.run([](auto& r) { return static_cast<std::int64_t>(r.local_index()); });
    CHECK(strategy.reduce(dist::sum, ids) == below(replicas));
    CHECK(strategy.reduce(dist::min, ids) == 0);
    CHECK(strategy.reduce(dist::max, ids) == static_cast<std::int64_t>(replicas) - 1);
    const auto halves = strategy.run([](auto& r) { return 0.5 * static_cast<double>(r.local_index()); });
    CHECK(strategy.reduce(dist::mean, halves) == 0.25 * static_cast<double>(replicas - 1));
    CHECK(strategy.reduce(dist::max, 7) == 7);
  }
  SUBCASE("reduce combines tensors element by element; different shapes are refused (spec C07)") {
    const auto tensors = strategy.run([](auto& replica) {
      dist::Tensor<float> tensor{{2, 2}};
      for (std::size_t i = 0; i < 4; ++i) tensor[i] = static_cast<float>(10 * i + replica.local_index());
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
        return dist::Tensor<float>{{replica.local_index() == 1 ? std::size_t{3} : std::size_t{2}}};
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
  SUBCASE("a distributed dataset divides each global batch, the last partial one too (spec C17, I03, I04, I24)") {
    for (const std::size_t rows : {std::size_t{1}, std::size_t{5}, std::size_t{16}, std::size_t{21}}) {
      CAPTURE(rows);
      const auto batches = handed_out(strategy, rows, 8);
      REQUIRE(batches.size() == (rows + 7) / 8);
      std::size_t next = 0;
      for (std::size_t step = 0; step < batches.size(); ++step) {
        const std::size_t in_batch = std::min<std::size_t>(8, rows - 8 * step);
        std::size_t before = 0;
        for (std::size_t r = 0; r < replicas; ++r) {
          const std::size_t share = 8 / replicas + (r < 8 % replicas ? 1 : 0);
          REQUIRE(batches[step][r].size() == std::min(in_batch - before, share));
          before += batches[step][r].size();
          for (const float row : batches[step][r]) CHECK(row == static_cast<float>(next++));
        }
      }
      CHECK(next == rows);
    }
  }
  SUBCASE("datasets from a function give each replica a whole batch, in replica order (spec C18, I17)") {
    std::size_t calls = 0;
    auto dataset = strategy.distribute_datasets_from_function([&](const dist::InputContext& context) {
      ++calls;
      CHECK(context.num_input_pipelines == 1);
      CHECK(context.num_replicas_in_sync == replicas);
      dist::Tensor<float> numbers{{4 * replicas + 1, 1}};
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
      return dist::data::tensor_slices(numbers) | dist::data::batch(context.get_per_replica_batch_size(2 * replicas));
    });
    CHECK(calls == 1);
    std::vector<std::size_t> rows;
    for (auto& step : dataset) {
      std::vector<std::size_t> received(replicas);
      strategy.run(
          [&](auto& replica, const auto& mine) {
            const std::size_t first = 2 * (rows.size() + replica.local_index());
            received[replica.local_index()] = mine.rows();
            for (std::size_t row = 0; row < mine.rows(); ++row) CHECK(mine[row] == static_cast<float>(first + row));
          },
          step);
      rows.insert(rows.end(), received.begin(), received.end());
    }
    // Two full steps, and one in which only replica 0 has a row.
    std::vector<std::size_t> expected(2 * replicas, 2);
    expected.push_back(1);
    expected.resize(3 * replicas);
    CHECK(rows == expected);
  }
  SUBCASE("a steady step does not allocate") {
    constexpr std::size_t count = 5000;
    auto weights = strategy.template variable<float>({count}, 1.0f, "weights");
    auto total = strategy.template variable<float, dist::OnRead, dist::Sum>({}, 0.0f, "total");
    auto steps = strategy.template variable<std::int64_t, dist::OnWrite, dist::OnlyFirstReplica>({}, 0, "steps");
    dist::PerReplica<dist::Tensor<float>> gradients(
        replicas, [](std::size_t) -> dist::Tensor<float> { return dist::Tensor<float>{{count}}; });
    const auto step = [&] {
      const auto losses = strategy.run(
          [&](auto& replica, dist::Tensor<float>& gradient) {
            std::fill(gradient.elements().begin(), gradient.elements().end(), 1.0f);
            const float loss = replica.all_reduce(dist::sum, 2.0f);
            replica.all_reduce(dist::mean, gradient.elements());
            replica.reduce_and_apply(dist::mean, gradient.elements(), weights.component(replica),
                                     [](std::size_t, std::span<float> mine, std::span<const float> reduced) {
                                       for (std::size_t i = 0; i < mine.size(); ++i) mine[i] -= reduced[i];
                                     });
            total.assign_add(replica, loss);
            steps.assign_add(replica, 1);
            return loss;
          },
          gradients);
      return strategy.reduce(dist::mean, losses) + total.value(strategy.scope());
    };
    const auto of_all = static_cast<float>(replicas);
    CHECK(step() == 2 * of_all + 2 * of_all * of_all);
    const std::size_t before = allocations;
    for (int i = 0; i < 20; ++i) static_cast<void>(step());
    CHECK(allocations - before == 0);
    CHECK(steps.value(strategy.scope()) == 21);
    CHECK(weights.read(strategy.scope())[count - 1] == 1.0f - 21.0f);
  }
}
