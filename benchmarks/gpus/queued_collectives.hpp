#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/strategy/mirrored.hpp>

#include "../support/clock.hpp"
#include "../support/collective_options.hpp"
#include "../support/collective_table.hpp"
#include "../support/collective_timing.hpp"
#include "../support/distribution.hpp"

/// All-reduce in device memory, timed like nccl-tests: in place, several calls in a row on the replicas' queues, then
/// one wait for the queues. Each call reduces the result of the previous one.
namespace bench {

/// Number of calls in a row for which the results of write_input's values are exact in every type. At most 20, as in
/// nccl-tests.
[[nodiscard]] constexpr std::size_t calls_in_a_row(bool is_sum, std::size_t ranks) {
  constexpr std::size_t most = 20, largest_exact = std::size_t{1} << 24;  // of a float
  if (!is_sum) return most;
  std::size_t calls = 1;
  for (std::size_t sum = ranks * 30 + ranks * (ranks - 1) / 2; calls < most && sum * ranks <= largest_exact; ++calls)
    sum *= ranks;
  return calls;
}

/// Times rows of calls for about `duration` seconds. A collective. Copies the input to `values` before each row (not
/// timed). Returns the median over the rows of the slowest replica's time per call. Checks the results of the first
/// row, which is a warm-up, and of the last.
template <class T, class Op>
[[nodiscard]] Timing time_rows(auto& replica, auto input, auto values, double duration) {
  constexpr bool is_sum = std::is_same_v<Op, dist::Sum>;
  constexpr std::size_t fewest = 15;
  const std::size_t ranks = replica.num_replicas_in_sync();
  const std::size_t calls = calls_in_a_row(is_sum, ranks);
  const auto queue = replica.queue();
  std::vector<T> on_host(values.size());
  std::size_t wrong = 0;
  unsigned round = 0;
  const auto renew = [&] {
    write_input(std::span{on_host}, replica.local_index(), ++round);
    queue.copy(std::span<const T>{on_host}, input);
  };
  const auto row = [&] {
    queue.copy(input, values);
    queue.wait();
    replica.barrier();
    const double start = seconds();
    for (std::size_t call = 0; call < calls; ++call) replica.all_reduce(Op{}, values);
    queue.wait();
    return replica.all_reduce(dist::max, seconds() - start);
  };
  const auto check = [&] {
    queue.copy(values, std::span{on_host});
    queue.wait();
    wrong += count_wrong(std::span<const T>{on_host}, is_sum, ranks, round, calls);
  };
  renew();
  row();
  check();
  renew();
  std::vector<double> times;
  for (double spent = 0; spent < duration || times.size() < fewest;) {
    const double elapsed = row();
    spent += elapsed;
    times.push_back(elapsed / static_cast<double>(calls));
  }
  check();
  return {median(std::move(times)), replica.all_reduce(dist::max, wrong)};
}

template <class Strategy, class T, class Op>
int measure_queued(const CollectiveOptions& options) {
  Strategy strategy{options.replicas};
  const std::size_t calls = calls_in_a_row(std::is_same_v<Op, dist::Sum>, options.replicas);
  CollectiveTable table{strategy.describe() + ", in place, " + std::to_string(calls) + " calls in a row", options,
                        options.replicas};
  for (const std::size_t bytes : options.sizes) {
    const std::size_t count = bytes / sizeof(T);
    if (count == 0) continue;
    const auto input = strategy.template buffer<T>(dist::Shape{count}, "input");
    const auto values = strategy.template buffer<T>(dist::Shape{count}, "values");
    const auto timings = strategy.run([&](auto& replica) {
      return time_rows<T, Op>(replica, input.component(replica), values.component(replica), options.duration);
    });
    table.add(count * sizeof(T), count, timings[0], "");
  }
  return table.finish();
}

/// Dispatches to the element type and the operation of the options.
template <class Strategy>
int measure_queued(const CollectiveOptions& options) {
  return with_element_type(options, [&]<class T>() {
    return options.op == "sum" ? measure_queued<Strategy, T, dist::Sum>(options)
                               : measure_queued<Strategy, T, dist::Max>(options);
  });
}

}  // namespace bench
