#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/context/replica_context.hpp>  // and with it what a pack is
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/variable/slot_update.hpp>

namespace dist::nn::detail {

/// One parameter's elements within a network's, up to `end`, with the padding after it, and its options.
struct Segment {
  std::size_t end;
  bool decays = true;
};

/// Returns a segment for each parameter of `network.layout()`, with `decays(name)`; without a layout only one.
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

/// Returns the index of element `i`'s segment.
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

/// Calls `visit(which, range)` for each segment's part of [first, first + count), in order.
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

template <class T>
struct SquareOf {
  const T* values;
  DIST_HD double operator()(std::size_t i) const {
    return static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
};

/// Adds the squares of `values`, elements from `first` on, to their segments' sums, or to `squares[0]`.
template <bool by_segment, class T>
void add_squares(std::span<double> squares, std::span<const Segment> segments, std::size_t first,
                 std::span<const T> values) {
  for_each_segment(segments, first, values.size(), [&](std::size_t which, IndexRange range) {
    squares[by_segment ? which : 0] += dist::detail::sum_of_squares(values.subspan(range.begin - first, range.size()));
  });
}
/// Writes the sums of squares of a range of `values`, by a reduction per segment in the queue.
template <bool by_segment, class Queue, class Squares, class Values>
void put_squares(const Queue& queue, Squares squares, std::span<const Segment> segments, IndexRange range,
                 Values values) {
  const SquareOf<typename Values::value_type> square{values.data()};
  if constexpr (!by_segment)
    queue.transform_reduce_to(sum, range, square, squares);
  else
    for_each_segment(segments, range.begin, range.size(), [&](std::size_t which, IndexRange part) {
      queue.transform_reduce_to(sum, part, square, squares.subspan(which, 1));
    });
}

}  // namespace dist::nn::detail

namespace dist::nn {

/// An update that looks up the options of an element's parameter in two tables: weight decay, and the gradients' scale.
template <class Update>
struct SegmentedUpdate {
  /// The update of one element, with the options of its parameter.
  Update update;
  /// The parameters' ranges of elements, with their options.
  const detail::Segment* segments;
  /// The number of these ranges.
  std::size_t segment_count;
  const double* scales;  ///< of the gradients, or null without scaling
  std::size_t stride;    ///< between the scales of two segments: 0 if all share one

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
  /// Calls `visit(update, range)` for each parameter with elements in `range`.
  template <class Visit>
  DIST_ALWAYS_INLINE void for_each_part(IndexRange range, Visit&& visit) const {
    detail::for_each_segment(std::span{segments, segment_count}, range.begin, range.size(),
                             [&](std::size_t which, IndexRange part)
                                 DIST_INLINE_LAMBDA { visit(of_segment(which), part); });
  }
  /// Returns one parameter's update.
  DIST_HD DIST_ALWAYS_INLINE Update of_segment(std::size_t which) const {
    Update changed = update;
    if (!segments[which].decays) changed.functor.decay = 0;
    if (scales != nullptr) changed.functor.scale = static_cast<decltype(changed.functor.scale)>(scales[which * stride]);
    return changed;
  }
};

/// An update that returns a parameter's update, by its number.
template <class U>
concept UpdatesBySegment = requires(const U& update) {
  update.of_segment(std::size_t{});
};

}  // namespace dist::nn
