#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "clock.hpp"
#include "distribution.hpp"

namespace bench {

/// Short work, repeated several times per round: a row of a table with the microseconds of a call.
struct Row {
  std::string name;
  int repetitions;  ///< per round
  std::function<void()> work;
  double times = 1;  ///< calls per repetition
  std::vector<double> microseconds = {};

  [[nodiscard]] Distribution distribution() const { return bench::distribution(microseconds); }
};

/// Runs all rows in turns in each round, after a warm-up round.
inline void run_in_turns(std::vector<Row>& rows, int rounds) {
  for (int round = -1; round < rounds; ++round)
    for (Row& row : rows) {
      const double start = seconds();
      for (int i = 0; i < row.repetitions; ++i) row.work();
      const double took = (seconds() - start) * 1e6 / (row.repetitions * row.times);
      if (round >= 0) row.microseconds.push_back(took);
    }
}
/// `unit` describes one call of the work: "a call".
inline void print_table(const std::vector<Row>& rows, int rounds, const char* unit) {
  std::printf("%-40s %12s %10s %10s\n",
              ("microseconds " + std::string{unit} + ", " + std::to_string(rounds) + " rounds").c_str(), "median",
              "p10", "p90");
  for (const Row& row : rows) {
    const Distribution spread = row.distribution();
    std::printf("%-40s %12.2f %10.2f %10.2f\n", row.name.c_str(), spread.median, spread.tenth, spread.ninetieth);
  }
}

}  // namespace bench
