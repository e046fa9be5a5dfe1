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

/// Contenders with names, all in turns or one alone: a profiler wants one, and programs of others take turns with one.
namespace bench {

/// Some work of a contender; how many units it did.
using Work = std::function<double()>;

struct NamedContender {
  std::string_view name;  ///< for --only
  std::string title;
  std::function<Work()> make;
};

/// The rate of one contender over that of another, both by their names.
struct Quotient {
  const char* title;
  std::string_view numerator;
  std::string_view denominator;
  bool is_share = false;  ///< of a limit, so at most 1
};
/// What a unit of one contender takes longer than one of another.
struct Difference {
  const char* title;
  std::string_view slower;
  std::string_view faster;
};

/// Adds the contenders, and what their rates over each other and the differences are, to the rounds, which have none yet.
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

/// Units per second of one contender in windows of a quarter of a second, for `duration` seconds; prints the median, which
/// JSON calls `unit` "_per_second". What main returns: 2 where nobody has that name.
inline int run_alone(std::span<const NamedContender> contenders, std::string_view name, double duration,
                     const char* unit) {
  const auto contender =
      std::find_if(contenders.begin(), contenders.end(), [&](const NamedContender& each) { return each.name == name; });
  if (contender == contenders.end()) {
    std::fprintf(stderr, "No contender has that name. They are:");
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
