#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "distribution.hpp"
#include "rounds.hpp"

/// Contenders with names, which run all in turns, or one alone.
namespace bench {

/// Does some work of a contender. Returns the number of units.
using Work = std::function<double()>;

struct NamedContender {
  std::string_view name;  ///< for --only
  std::string title;
  std::function<Work()> make;
};

/// The ratio of the rates of two contenders, identified by name.
struct Quotient {
  const char* title;
  std::string_view numerator;
  std::string_view denominator;
  bool is_share = false;  ///< the denominator is a limit, so at most 1
};
/// The additional time per unit of one contender compared with another.
struct Difference {
  const char* title;
  std::string_view slower;
  std::string_view faster;
};

/// Adds contenders, ratios and differences to `rounds`, which must be empty.
inline void add(Rounds& rounds, std::span<const NamedContender> contenders, std::span<const Quotient> quotients,
                std::span<const Difference> differences = {}) {
  for (const NamedContender& contender : contenders) rounds.add(contender.title, contender.make());
  const auto index_of = [&](std::string_view name) {
    const auto found = std::find_if(contenders.begin(), contenders.end(),
                                    [&](const NamedContender& contender) { return contender.name == name; });
    return static_cast<std::size_t>(found - contenders.begin());
  };
  for (const Quotient& quotient : quotients)
    rounds.ratio(quotient.title, index_of(quotient.numerator), index_of(quotient.denominator), quotient.is_share);
  for (const Difference& difference : differences)
    rounds.difference(difference.title, index_of(difference.slower), index_of(difference.faster));
}

/// Measures one contender in windows of 0.25 s for `duration` seconds, and prints the median rate as JSON, with the
/// key `unit` "_per_second". Returns the exit status: 2 if the name is unknown.
inline int run_alone(std::span<const NamedContender> contenders, std::string_view name, double duration,
                     const char* unit) {
  const auto contender =
      std::find_if(contenders.begin(), contenders.end(), [&](const NamedContender& each) { return each.name == name; });
  if (contender == contenders.end()) {
    std::fprintf(stderr, "Unknown contender. Available:");
    for (const NamedContender& each : contenders) std::fprintf(stderr, " %s", std::string(each.name).c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  const Work work = contender->make();
  const double begin_warm = seconds();
  for (int i = 0; i < 10 && (i == 0 || seconds() - begin_warm < duration); ++i) work();
  std::vector<double> rates;
  const double start = seconds();
  double now = start;
  do {
    const double begin = now;
    double done = 0;
    while (now - begin < 0.25) {
      done += work();
      now = seconds();
    }
    rates.push_back(done / (now - begin));
  } while (now - start < duration);
  const Distribution rate = distribution(std::move(rates));
  std::printf("{\"contender\": \"%s\", \"%s_per_second\": %.6g, \"min\": %.6g, \"max\": %.6g}\n",
              contender->title.c_str(), unit, rate.median, rate.least, rate.greatest);
  return 0;
}

}  // namespace bench
