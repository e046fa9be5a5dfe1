#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "distribution.hpp"

/// Reproducible ratios on a shared machine: contenders run in turns, and the median of the ratios over the quiet
/// rounds counts.
namespace bench {

struct Contender {
  std::string name;
  /// Does the work once. Returns the number of units ("images", "bytes"), or the seconds if `times_itself`.
  std::function<double()> work;
  bool times_itself;
};

/// A comparison of two contenders by index: the ratio of their rates, or the additional microseconds per unit of the
/// first.
struct Relation {
  std::string name;
  std::size_t first;
  std::size_t second;
  bool is_difference;
  bool is_share = false;  ///< the second is a limit, so at most 1
};

class Rounds {
 public:
  Rounds(std::string title, std::string unit) : title_(std::move(title)), unit_(std::move(unit)) {}

  std::size_t add(std::string name, std::function<double()> work) {
    contenders_.push_back({std::move(name), std::move(work), false});
    rates_.emplace_back();
    return contenders_.size() - 1;
  }
  /// Adds a contender that prepares each call and returns the seconds of the rest. The median call of a round counts.
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

  /// Runs rounds until `count` were quiet, at most twice as many. A round is quiet if `gate()` is true before and
  /// after each contender. A contender works for at least `duration` seconds, and is repeated a few times if the gate
  /// was false.
  void run(int count, double duration, const std::function<bool()>& gate) {
    for (const Contender& contender : contenders_) static_cast<void>(contender.work());  // warm-up
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

  /// False if a share of a limit is above 1, so the limit is measured wrongly. Prints such shares.
  [[nodiscard]] bool limits_hold() const {
    bool hold = true;
    for (const Relation& relation : relations_) {
      const double share = distribution(marks_.counted(values_of(relation))).median;
      if (!relation.is_share || share <= 1) continue;
      std::fprintf(stderr, "%s is %.3f. A share above 1 means that the limit is measured wrongly\n",
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

inline void print_json(std::FILE* out, const std::vector<Rounds>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::fputs(i == 0 ? "[\n" : ",\n", out);
    results[i].print_json(out);
  }
  std::fputs("]\n", out);
}

}  // namespace bench
