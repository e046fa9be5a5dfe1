#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "clock.hpp"
#include "distribution.hpp"

/// Timing of an all-reduce, for the library and its peers.
namespace bench {

/// Writes the input of a rank in a round: small integers with exact sums in every type and order. Each round differs,
/// so that stale results are detected.
template <class T>
void write_input(std::span<T> values, std::size_t rank, unsigned round) {
  const T base = static_cast<T>(rank + round % 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = base + static_cast<T>(static_cast<int>(i % 16));
}

/// Returns the number of wrong elements after `calls` calls in a row, each on the previous result.
template <class T>
std::size_t count_wrong(std::span<const T> values, bool is_sum, std::size_t ranks, unsigned round,
                        std::size_t calls = 1) {
  std::size_t wrong = 0;
  std::size_t growth = 1;
  for (std::size_t call = 1; call < calls; ++call) growth *= ranks;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t base = round % 16 + i % 16;
    const std::size_t expected = is_sum ? growth * (ranks * base + ranks * (ranks - 1) / 2) : base + ranks - 1;
    if (values[i] != static_cast<T>(expected)) ++wrong;
  }
  return wrong;
}

struct Timing {
  double seconds = 0;  ///< of a call
  std::size_t wrong = 0;
};

/// Calls up to this size are shorter than two reads of the clock, so they are timed in rows.
constexpr std::size_t largest_in_a_row = 1024;

/// Times an all-reduce of `bytes` for about `duration` seconds. Every rank calls it with an object that has
///
///   rank.write_input(round)   writes this rank's input, before every call
///   rank.all_reduce()
///   rank.count_wrong(round)   wrong elements in this rank's result
///   rank.barrier()
///   rank.max(values)          in-place maximum over all ranks
///
/// Up to 1 KiB, pairs of write_input and all_reduce are timed in rows, and the median of the rows' averages counts.
/// The shortest of three rows determines the length, and there are at least 15, so that a lost time slice is an
/// outlier. Larger calls are timed one by one after a barrier: the median of the slowest rank's times. All ranks make
/// the same number of calls.
template <class Rank>
Timing time_all_reduce(Rank& rank, std::size_t bytes, double duration) {
  constexpr std::size_t fewest = 15;
  std::vector<double> times;
  std::size_t wrong = 0;
  unsigned round = 0;
  for (int i = 0; i < 3; ++i) {  // also warms up
    rank.write_input(++round);
    rank.all_reduce();
    wrong += rank.count_wrong(round);
  }
  double spent = 0;
  std::size_t calls = 1;
  if (bytes <= largest_in_a_row) {
    const auto row = [&] {
      rank.barrier();
      const double start = seconds();
      for (std::size_t i = 0; i < calls; ++i) {
        rank.write_input(++round);
        rank.all_reduce();
      }
      double elapsed = seconds() - start;
      rank.max(std::span{&elapsed, 1});
      return elapsed;
    };
    while (std::min({row(), row(), row()}) < duration / 50) calls *= 2;
    while (spent < duration || times.size() < fewest) {
      const double elapsed = row();
      spent += elapsed;
      times.push_back(elapsed / static_cast<double>(calls));
    }
  } else {
    while (spent < duration || times.size() < fewest) {
      std::vector<double> batch(calls);
      const double begin = seconds();
      for (double& time : batch) {
        rank.write_input(++round);
        rank.barrier();
        const double start = seconds();
        rank.all_reduce();
        time = seconds() - start;
      }
      double elapsed = seconds() - begin;
      rank.max(batch);
      rank.max(std::span{&elapsed, 1});
      spent += elapsed;
      times.insert(times.end(), batch.begin(), batch.end());
      calls = times.size();
    }
  }
  wrong += rank.count_wrong(round);
  auto most_wrong = static_cast<double>(wrong);
  rank.max(std::span{&most_wrong, 1});
  return {median(std::move(times)), static_cast<std::size_t>(most_wrong)};
}

}  // namespace bench
