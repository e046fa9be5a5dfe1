#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/nn/gradient_storage.hpp>

namespace dist::nn::detail {

/// One parameter's elements among all of a network, up to `end`, and how an optimizer treats them. Padding belongs to the
/// parameter before it.
struct Segment {
  std::size_t end;
  bool decays = true;
};

/// One segment for each parameter of `network.layout()`, of which `decays(name)` says whether it decays; of a network
/// without a layout, one for all.
template <class Network, class Decays>
[[nodiscard]] std::vector<Segment> segments_of(Network& network, Decays&& decays) {
  std::vector<Segment> segments;
  if constexpr (HasLayout<Network>) {
    for (const auto& parameter : network.layout()) {
      if (!segments.empty()) segments.back().end = parameter.offset;
      segments.push_back({.end = parameter.offset, .decays = decays(parameter.name())});
    }
  }
  if (segments.empty()) segments.push_back({.end = 0, .decays = decays(network.parameters().name())});
  segments.back().end = network.parameters().size();
  return segments;
}

/// The number of the segment that element `i` lies in.
[[nodiscard]] DIST_HD constexpr std::size_t segment_at(const Segment* segments, std::size_t count,
                                                       std::size_t i) noexcept {
  std::size_t first = 0;
  for (std::size_t last = count - 1; first < last;) {
    const std::size_t middle = first + (last - first) / 2;
    if (i < segments[middle].end)
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

/// Calls `visit(which, range)` for the part of each segment that lies in [first, first + count), in order.
template <class Visit>
DIST_ALWAYS_INLINE void for_each_segment(std::span<const Segment> segments, std::size_t first, std::size_t count,
                                         Visit&& visit) {
  const std::size_t last = first + count;
  for (std::size_t which = segment_at(segments.data(), segments.size(), first); first < last; ++which) {
    const std::size_t end = std::min(last, segments[which].end);
    visit(which, IndexRange{first, end});
    first = end;
  }
}

}  // namespace dist::nn::detail
