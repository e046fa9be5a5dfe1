/// The sums of squares that norms of gradients and weights are the roots of, by parameter or of all together.
#pragma once

#include <cstddef>
#include <span>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/nn/segments.hpp>
#include <dist/variable/slot_update.hpp>

namespace dist::nn::detail {

template <class T>
struct SquareOf {
  const T* values;
  DIST_HD double operator()(std::size_t i) const {
    return static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
};

/// Adds the squares of `values`, which are elements `first` and on, to the sum of each one's segment, or to `squares[0]`.
template <bool by_segment, class T>
void add_squares(std::span<double> squares, std::span<const Segment> segments, std::size_t first,
                 std::span<const T> values) {
  for_each_segment(segments, first, values.size(), [&](std::size_t which, IndexRange range) {
    squares[by_segment ? which : 0] += dist::detail::sum_of_squares(values.subspan(range.begin - first, range.size()));
  });
}
/// Writes the same sums of a range of `values`, by a reduction of each segment in the queue of the device where they lie.
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
