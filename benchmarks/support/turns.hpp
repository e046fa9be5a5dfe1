#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "clock.hpp"
#include "distribution.hpp"

namespace bench {

/// Something short that is done many times in a round, as a line of a table: how many microseconds it takes once.
struct Row {
  std::string name;
  int repetitions;  ///< in a round
  std::function<void()> work;
  double times = 1;  ///< in one repetition
  std::vector<double> microseconds = {};

  [[nodiscard]] Distribution distribution() const { return bench::distribution(microseconds); }
};

/// All rows take turns in each round. One more round before the others warms up.
inline void run_in_turns(std::vector<Row>& rows, int rounds) {
  for (int round = -1; round < rounds; ++round)
    for (Row& row : rows) {
      const double start = seconds();
      for (int i = 0; i < row.repetitions; ++i) row.work();
      const double took = (seconds() - start) * 1e6 / (row.repetitions * row.times);
      if (round >= 0) row.microseconds.push_back(took);
    }
}
/// `unit`: what is done once, as in "a call".
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
