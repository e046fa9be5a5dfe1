#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>

namespace dist::nn::detail {

/// One parameter's elements among all of a network, and how an optimizer treats them. Padding belongs to the parameter
/// before it.
struct Segment {
  std::string name;
  std::size_t end;
  bool decays = true;
};

/// One segment for each parameter of `network.layout()`; of a network without a layout, one for all.
template <class Network>
[[nodiscard]] std::vector<Segment> segments_of(Network& network) {
  std::vector<Segment> segments;
  if constexpr (requires { network.layout(); }) {
    for (const auto& parameter : network.layout()) {
      if (!segments.empty()) segments.back().end = parameter.offset;
      segments.push_back({.name = parameter.name(), .end = parameter.offset});
    }
  }
  if (segments.empty()) segments.push_back({.name = network.parameters().name(), .end = 0});
  segments.back().end = network.parameters().size();
  return segments;
}

/// Calls `visit(which, range)` for the part of each segment that lies in [first, first + count), in order.
template <class Visit>
DIST_ALWAYS_INLINE void for_each_segment(std::span<const Segment> segments, std::size_t first, std::size_t count,
                                         Visit&& visit) {
  const std::size_t last = first + count;
  auto segment = std::upper_bound(segments.begin(), segments.end(), first,
                                  [](std::size_t position, const Segment& one) { return position < one.end; });
  for (; first < last; ++segment) {
    const std::size_t end = std::min(last, segment->end);
    visit(static_cast<std::size_t>(segment - segments.begin()), IndexRange{first, end});
    first = end;
  }
}

/// In double and in several sums at once, so that the additions need not wait for each other.
template <class T>
[[nodiscard]] double sum_of_squares(std::span<const T> values) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  for (; i < values.size(); ++i) sums[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  double total = 0;
  for (const double one : sums) total += one;
  return total;
}

}  // namespace dist::nn::detail
