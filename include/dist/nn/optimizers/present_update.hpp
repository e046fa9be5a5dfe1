#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <dist/context/replica_context.hpp>  // and with it the parts of an update
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/nn/segments.hpp>

namespace dist::nn {

/// An update that leaves the parameters that have no gradient, and their slots, as they are.
template <class Update>
struct PresentUpdate {
  Update update;
  const detail::Segment* segments;
  std::size_t segment_count;
  const std::uint8_t* has_gradient;  ///< of each segment

  template <class T>
  DIST_ALWAYS_INLINE T operator()(std::size_t i, T weight, T gradient) const {
    return has_gradient[detail::segment_at(segments, segment_count, i)] ? update(i, weight, gradient) : weight;
  }
  /// Calls `visit(update, range)` for each parameter that has a gradient and elements in `range`.
  template <class Visit>
  DIST_ALWAYS_INLINE void for_each_part(IndexRange range, Visit&& visit) const {
    detail::for_each_segment(std::span{segments, segment_count}, range.begin, range.size(),
                             [&](std::size_t which, IndexRange part) DIST_INLINE_LAMBDA {
                               if (has_gradient[which]) dist::detail::for_each_part(update, part, visit);
                             });
  }
};

}  // namespace dist::nn
