#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

/// Statistics of repeated measurements, and the selection of quiet rounds.
namespace bench {

struct Distribution {
  double least, tenth, median, ninetieth, greatest;  ///< minimum, 10th, 50th and 90th percentile, maximum
};

/// `values` must not be empty.
inline Distribution distribution(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {values.front(), at(0.1), values[values.size() / 2], at(0.9), values.back()};
}
inline double median(std::vector<double> values) { return distribution(std::move(values)).median; }

/// Marks of rounds: quiet, or noisy if the machine was busy. If fewer than `enough` rounds were quiet, the noisy ones
/// count, too.
class Marks {
 public:
  static constexpr std::size_t enough = 3;

  void add(bool quiet) { quiet_.push_back(quiet); }
  [[nodiscard]] std::size_t rounds() const { return quiet_.size(); }
  [[nodiscard]] std::size_t quiet() const {
    return static_cast<std::size_t>(std::count(quiet_.begin(), quiet_.end(), true));
  }
  [[nodiscard]] std::size_t noisy() const { return rounds() - quiet(); }
  /// True if only quiet rounds count.
  [[nodiscard]] bool trusted() const { return quiet() >= enough; }

  /// Returns the values of the rounds that count.
  [[nodiscard]] std::vector<double> counted(const std::vector<double>& values) const {
    return trusted() ? marked(values, true) : values;
  }
  /// Returns the effect of noise: "; in noisy rounds 1.72", or nothing if it is unknown.
  [[nodiscard]] std::string effect(const std::vector<double>& values) const {
    if (!trusted() || noisy() == 0) return "";
    char text[64];
    std::snprintf(text, sizeof text, "; in noisy rounds %.3f", median(marked(values, false)));
    return text;
  }
  /// "20 rounds, 17 quiet, which count [qqqnqqq…]"
  [[nodiscard]] std::string describe() const {
    std::string line =
        std::to_string(rounds()) + (rounds() == 1 ? " round, " : " rounds, ") + std::to_string(quiet()) + " quiet";
    line += trusted() ? (noisy() == 0 ? "" : ", which count") : "; TOO FEW, SO NOISY ROUNDS COUNT, TOO";
    line += " [";
    for (const bool quiet : quiet_) line += quiet ? 'q' : 'n';
    return line + "]";
  }

 private:
  [[nodiscard]] std::vector<double> marked(const std::vector<double>& values, bool mark) const {
    std::vector<double> chosen;
    for (std::size_t round = 0; round < values.size(); ++round)
      if (quiet_[round] == mark) chosen.push_back(values[round]);
    return chosen;
  }

  std::vector<bool> quiet_;
};

}  // namespace bench
