#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "distribution.hpp"

/// Ratios that hold on a shared machine: contenders take turns in rounds, each round gives one value of every ratio,
/// and the median over the quiet rounds counts.
namespace bench {

struct Contender {
  std::string name;
  /// Does the work once and returns how many units it did ("images", "bytes"); the seconds that it took if it is timed.
  std::function<double()> work;
  bool times_itself;
};

/// Of two contenders, by their indices: the rate of the first over that of the second, or how many microseconds longer a
/// unit of the first takes.
struct Relation {
  std::string name;
  std::size_t first;
  std::size_t second;
  bool is_difference;
  bool is_share = false;  ///< of a limit, so at most 1
};

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
  void ratio(std::string name, std::size_t numerator, std::size_t denominator, bool is_share = false) {
    relations_.push_back({std::move(name), numerator, denominator, false, is_share});
  }
  void difference(std::string name, std::size_t slower, std::size_t faster) {
    relations_.push_back({std::move(name), slower, faster, true});
  }

  /// Runs rounds until `count` were quiet, at most twice as many. A round is quiet when `gate()` holds before and after
  /// each contender. Each contender works for at least `duration` seconds a round, and again, a few times, where the
  /// gate did not hold.
  void run(int count, double duration, const std::function<bool()>& gate) {
    for (const Contender& contender : contenders_) static_cast<void>(contender.work());  // warm
    for (int round = 0; round < 2 * count && marks_.quiet() < static_cast<std::size_t>(count); ++round) {
      bool round_is_quiet = true;
      bool quiet = gate();
      for (std::size_t i = 0; i < contenders_.size(); ++i) {
        double rate = 0;
        for (int again = 0; again == 0 || (!quiet && again < 3); ++again) {
          const bool before = quiet || gate();
          rate = rate_of(contenders_[i], duration);
          quiet = gate() && before;
        }
        round_is_quiet = round_is_quiet && quiet;
        rates_[i].push_back(rate);
      }
      marks_.add(round_is_quiet);
    }
  }

  void print_table(std::FILE* out = stdout) const {
    std::fprintf(out, "%s: %s\n", title_.c_str(), marks_.describe().c_str());
    std::fprintf(out, "  %-58s %12s      %10s %10s %10s %10s\n", "", "median", "min", "10 %", "90 %", "max");
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      const Distribution rate = distribution(marks_.counted(rates_[i]));
      if (contenders_[i].times_itself)
        std::fprintf(out, "  %-58s %12.1f us   %10.1f %10.1f %10.1f %10.1f\n", contenders_[i].name.c_str(),
                     1e6 / rate.median, 1e6 / rate.greatest, 1e6 / rate.ninetieth, 1e6 / rate.tenth, 1e6 / rate.least);
      else
        std::fprintf(out, "  %-58s %12.4g %s/s  %10.4g %10.4g %10.4g %10.4g\n", contenders_[i].name.c_str(),
                     rate.median, unit_.c_str(), rate.least, rate.tenth, rate.ninetieth, rate.greatest);
    }
    for (const Relation& relation : relations_) {
      const std::vector<double> values = values_of(relation);
      const Distribution value = distribution(marks_.counted(values));
      std::fprintf(out, "  %-58s %12.3f %-2s   %10.3f %10.3f %10.3f %10.3f%s\n", relation.name.c_str(), value.median,
                   relation.is_difference ? "us" : "x", value.least, value.tenth, value.ninetieth, value.greatest,
                   marks_.effect(values).c_str());
    }
  }

  /// False if the share of a limit is above 1, so that the limit is measured wrongly; prints which.
  [[nodiscard]] bool limits_hold() const {
    bool hold = true;
    for (const Relation& relation : relations_) {
      const double share = distribution(marks_.counted(values_of(relation))).median;
      if (!relation.is_share || share <= 1) continue;
      std::fprintf(stderr, "%s is %.3f, more than the limit allows: the benchmark measures the limit wrongly\n",
                   relation.name.c_str(), share);
      hold = false;
    }
    return hold;
  }

  void print_json(std::FILE* out) const {
    std::fprintf(out, "{\"title\": \"%s\", \"unit\": \"%s/s\", \"rounds\": %zu, \"noisy\": %zu, \"contenders\": [",
                 title_.c_str(), unit_.c_str(), marks_.rounds(), marks_.noisy());
    for (std::size_t i = 0; i < contenders_.size(); ++i) print_entry(out, i == 0, contenders_[i].name, rates_[i]);
    print_relations(out, "ratios", false);
    print_relations(out, "differences_us", true);
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
    return contender.times_itself ? 1 / median(std::move(times)) : done / (now - start);
  }

  /// One for each round.
  [[nodiscard]] std::vector<double> values_of(const Relation& relation) const {
    std::vector<double> values;
    for (std::size_t round = 0; round < rates_[relation.first].size(); ++round) {
      const double first = rates_[relation.first][round];
      const double second = rates_[relation.second][round];
      values.push_back(relation.is_difference ? 1e6 * (1 / first - 1 / second) : first / second);
    }
    return values;
  }

  void print_relations(std::FILE* out, const char* title, bool differences) const {
    std::fprintf(out, "], \"%s\": [", title);
    bool is_first = true;
    for (const Relation& relation : relations_) {
      if (relation.is_difference != differences) continue;
      print_entry(out, is_first, relation.name, values_of(relation));
      is_first = false;
    }
  }
  void print_entry(std::FILE* out, bool is_first, const std::string& name, const std::vector<double>& values) const {
    const Distribution value = distribution(marks_.counted(values));
    std::fprintf(
        out, "%s{\"name\": \"%s\", \"median\": %.6g, \"min\": %.6g, \"p10\": %.6g, \"p90\": %.6g, \"max\": %.6g}",
        is_first ? "" : ", ", name.c_str(), value.median, value.least, value.tenth, value.ninetieth, value.greatest);
  }

  std::string title_;
  std::string unit_;
  std::vector<Contender> contenders_;
  std::vector<Relation> relations_;
  std::vector<std::vector<double>> rates_;
  Marks marks_;
};

/// All of them, as a list.
inline void print_json(std::FILE* out, const std::vector<Rounds>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::fputs(i == 0 ? "[\n" : ",\n", out);
    results[i].print_json(out);
  }
  std::fputs("]\n", out);
}

}  // namespace bench
