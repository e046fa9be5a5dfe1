#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "machine.hpp"

/// Ratios that hold on a shared machine: contenders take turns in rounds, each round gives one value of every ratio,
/// and the median over the rounds counts.
namespace bench {

struct Contender {
  std::string name;
  /// Does the work once and returns how many units it did ("images", "bytes"); the seconds that it took if it is timed.
  std::function<double()> work;
  bool times_itself;
};

struct Ratio {
  std::string name;
  std::size_t numerator;    ///< index of a contender
  std::size_t denominator;  ///< index of a contender
};

struct Distribution {
  double low, median, high;
};

inline Distribution distribution(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

class Rounds {
 public:
  Rounds(std::string title, std::string unit) : title_(std::move(title)), unit_(std::move(unit)) {}

  std::size_t add(std::string name, std::function<double()> work) {
    contenders_.push_back({std::move(name), std::move(work), false});
    rates_.emplace_back();
    return contenders_.size() - 1;
  }
  /// One that prepares every call and gives the seconds of the rest; its rate in a round is that of the median call.
  std::size_t add_timed(std::string name, std::function<double()> work) {
    contenders_.push_back({std::move(name), std::move(work), true});
    rates_.emplace_back();
    return contenders_.size() - 1;
  }
  void ratio(std::string name, std::size_t numerator, std::size_t denominator) {
    ratios_.push_back({std::move(name), numerator, denominator});
  }

  /// Runs `count` rounds in which `gate()` holds before and after each contender, at most three times as many in all.
  /// Each contender works for at least `duration` seconds a round, and again, a few times, where the gate did not hold.
  void run(int count, double duration, const std::function<bool()>& gate) {
    for (const Contender& contender : contenders_) static_cast<void>(contender.work());  // warm
    for (int attempt = 0; attempt < 3 * count && valid_ < count; ++attempt) {
      std::vector<double> rates;
      bool quiet = gate();
      for (const Contender& contender : contenders_) {
        double rate = 0;
        for (int again = 0; again == 0 || (!quiet && again < 5); ++again) {
          if (!quiet && !gate()) continue;
          rate = rate_of(contender, duration);
          quiet = gate();
        }
        if (!quiet) break;
        rates.push_back(rate);
      }
      if (!quiet) {
        ++noisy_;
        continue;
      }
      ++valid_;
      for (std::size_t i = 0; i < rates.size(); ++i) rates_[i].push_back(rates[i]);
    }
  }

  [[nodiscard]] bool measured() const { return valid_ > 0; }

  void print_table(std::FILE* out = stdout) const {
    std::fprintf(out, "%s: %d rounds, %d discarded as noisy\n", title_.c_str(), valid_, noisy_);
    if (!measured()) return;
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      const auto rate = distribution(rates_[i]);
      if (contenders_[i].times_itself) {
        std::fprintf(out, "  %-58s %12.1f us  (%.1f to %.1f)\n", contenders_[i].name.c_str(), 1e6 / rate.median,
                     1e6 / rate.high, 1e6 / rate.low);
        continue;
      }
      std::fprintf(out, "  %-58s %12.4g %s/s  (%.4g to %.4g)\n", contenders_[i].name.c_str(), rate.median,
                   unit_.c_str(), rate.low, rate.high);
    }
    for (const Ratio& ratio : ratios_) {
      const auto value = distribution(values_of(ratio));
      std::fprintf(out, "  %-58s %12.3f x  (%.3f to %.3f)\n", ratio.name.c_str(), value.median, value.low, value.high);
    }
  }

  void print_json(std::FILE* out) const {
    std::fprintf(out, "{\"title\": \"%s\", \"unit\": \"%s/s\", \"rounds\": %d, \"noisy\": %d, \"contenders\": [",
                 title_.c_str(), unit_.c_str(), valid_, noisy_);
    for (std::size_t i = 0; measured() && i < contenders_.size(); ++i)
      print_entry(out, i, contenders_[i].name, rates_[i]);
    std::fprintf(out, "], \"ratios\": [");
    for (std::size_t i = 0; measured() && i < ratios_.size(); ++i)
      print_entry(out, i, ratios_[i].name, values_of(ratios_[i]));
    std::fprintf(out, "]}\n");
  }

 private:
  [[nodiscard]] static double rate_of(const Contender& contender, double duration) {
    const double start = seconds();
    double done = 0, now = start;
    std::vector<double> times;
    while (now - start < duration) {
      const double result = contender.work();
      done += result;
      if (contender.times_itself) times.push_back(result);
      now = seconds();
    }
    return contender.times_itself ? 1 / distribution(std::move(times)).median : done / (now - start);
  }

  [[nodiscard]] std::vector<double> values_of(const Ratio& ratio) const {
    std::vector<double> values;
    for (std::size_t round = 0; round < rates_[ratio.numerator].size(); ++round)
      values.push_back(rates_[ratio.numerator][round] / rates_[ratio.denominator][round]);
    return values;
  }

  static void print_entry(std::FILE* out, std::size_t index, const std::string& name,
                          const std::vector<double>& values) {
    const auto value = distribution(values);
    std::fprintf(out, "%s{\"name\": \"%s\", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g}", index == 0 ? "" : ", ",
                 name.c_str(), value.median, value.low, value.high);
  }

  std::string title_;
  std::string unit_;
  std::vector<Contender> contenders_;
  std::vector<Ratio> ratios_;
  std::vector<std::vector<double>> rates_;
  int valid_ = 0;
  int noisy_ = 0;
};

/// The round is quiet when two cores together compute nearly twice what one does.
template <class Strategy>
std::function<bool()> quiet_cores(Strategy& two_replicas) {
  return [&] {
    const double both = joint_fma_rate(two_replicas, 0.02);
    return is_quiet(fma_rate(0.02), both);
  };
}

}  // namespace bench
