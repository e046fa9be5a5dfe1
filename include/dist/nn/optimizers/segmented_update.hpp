#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <dist/context/replica_context.hpp>  // and with it what a pack is
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/nn/segments.hpp>

namespace dist::nn {

/// An update of an optimizer with options that looks up, in two tables, what they mean for an element's parameter:
/// whether its weights decay, and by what its gradients are scaled.
template <class Update>
struct SegmentedUpdate {
  Update update;
  const detail::Segment* segments;
  std::size_t segment_count;
  const double* scales;  ///< of the gradients, or null where the update scales none
  std::size_t stride;    ///< from one segment's scale to the next: 0 where all have one

  template <class T>
  DIST_HD DIST_ALWAYS_INLINE T operator()(std::size_t i, T weight, T gradient) const {
    return of_segment(detail::segment_at(segments, segment_count, i))(i, weight, gradient);
  }
  template <class T>
  [[nodiscard]] DIST_HD DIST_ALWAYS_INLINE Pack<T> pack(std::size_t i, Pack<T> weights, Pack<T> gradients) const {
    std::size_t which = detail::segment_at(segments, segment_count, i);
    Update of_element = of_segment(which);
    return update.pack(
        i, weights, gradients, [&](std::size_t element) -> const auto& {
          while (element >= segments[which].end) of_element = of_segment(++which);
          return of_element.functor;
        });
  }
  /// Calls `visit(update, range)` for each parameter that has elements in `range`.
  template <class Visit>
  DIST_ALWAYS_INLINE void for_each_part(IndexRange range, Visit&& visit) const {
    detail::for_each_segment(std::span{segments, segment_count}, range.begin, range.size(),
                             [&](std::size_t which, IndexRange part)
                                 DIST_INLINE_LAMBDA { visit(of_segment(which), part); });
  }
  /// The update of the elements of one parameter.
  DIST_HD DIST_ALWAYS_INLINE Update of_segment(std::size_t which) const {
    Update changed = update;
    if (!segments[which].decays) changed.functor.decay = 0;
    if (scales != nullptr) changed.functor.scale = static_cast<decltype(changed.functor.scale)>(scales[which * stride]);
    return changed;
  }
};

/// An update that looks up what the options mean for a parameter, by its number in the layout.
template <class U>
concept UpdatesBySegment = requires(const U& update) {
  update.of_segment(std::size_t{});
};

}  // namespace dist::nn
