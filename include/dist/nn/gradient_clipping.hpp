#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/context/replica_context.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/segments.hpp>

namespace dist::nn {

namespace detail {

/// By what a parameter's gradients of that norm are multiplied. NaN stays NaN.
[[nodiscard]] inline double scale_of(const ClipNorm& clip, double norm) {
  const double limit = double{clip.norm};
  return limit / (norm <= limit ? limit : norm);
}
/// By what all gradients, of that norm together, are multiplied: NaN unless all are finite.
[[nodiscard]] inline double scale_of(const GlobalClipNorm& clip, double norm) {
  const double limit = double{clip.norm};
  return (norm <= limit ? 1.0 : limit / norm) + (norm - norm);
}

}  // namespace detail

/// Clips gradients by the norm of each parameter's (nn::ClipNorm), or of all together (nn::GlobalClipNorm): finds the
/// scales that an update then multiplies them with.
///
/// Norms are known when all is reduced. Until then each replica keeps the sums of its share of the gradients, so that
/// the replicas' gradients are read once; what needs no sum stays where it is.
template <class S, class T, class Clip>
class GradientClipping {
 public:
  static constexpr bool by_parameter = std::is_same_v<Clip, ClipNorm>;

  /// Of so many elements in so many segments, for an optimizer of that name. Throws OutOfMemory.
  GradientClipping(S& strategy, std::size_t elements, std::size_t segments, std::string_view optimizer)
      : scales_(strategy.template buffer<double>(Shape{by_parameter ? segments : 1}, text(optimizer, "/scales"))) {
    if (strategy.num_replicas_in_sync() > 1)
      sums_.emplace(strategy.template buffer<T>(Shape{elements}, text(optimizer, "/sums")));
  }

  /// What is to be applied, and by what it is to be multiplied: one scale for each segment, or one for all.
  struct Clipped {
    std::span<const T> gradients;
    std::span<const double> scales;
  };

  /// The sums of the replicas' gradients, of this replica's share. A collective call.
  [[nodiscard]] Clipped reduce(const InReplica auto& replica, std::span<T> gradient,
                               std::span<const detail::Segment> segments, const Clip& clip) const {
    const std::span<double> squares = no_squares(replica);
    const std::span<T> sums = sums_ ? sums_->component(replica) : gradient;
    replica.reduce_scatter(sum, gradient, [&](std::size_t first, std::span<const T> reduced) {
      T* const kept = sums.data() + first;
      if (kept != reduced.data()) std::copy(reduced.begin(), reduced.end(), kept);
      add_squares(squares, segments, first, reduced);
    });
    replica.all_reduce(sum, squares);
    return {sums, scales_from(squares, clip)};
  }
  /// This replica's gradients as they are.
  [[nodiscard]] Clipped take(const InReplica auto& replica, std::span<T> gradient,
                             std::span<const detail::Segment> segments, const Clip& clip) const {
    const std::span<double> squares = no_squares(replica);
    add_squares(squares, segments, 0, gradient);
    return {gradient, scales_from(squares, clip)};
  }

 private:
  [[nodiscard]] std::span<double> no_squares(const InReplica auto& replica) const {
    const std::span<double> squares = scales_.component(replica);
    std::fill(squares.begin(), squares.end(), 0.0);
    return squares;
  }
  static void add_squares(std::span<double> squares, std::span<const detail::Segment> segments, std::size_t first,
                          std::span<const T> gradients) {
    detail::for_each_segment(segments, first, gradients.size(), [&](std::size_t which, IndexRange range) {
      squares[by_parameter ? which : 0] += detail::sum_of_squares(gradients.subspan(range.begin - first, range.size()));
    });
  }
  [[nodiscard]] static std::span<const double> scales_from(std::span<double> squares, const Clip& clip) {
    for (double& value : squares) value = detail::scale_of(clip, std::sqrt(value));
    return squares;
  }

  template <class U>
  using Buffer = decltype(std::declval<S&>().template buffer<U>(Shape{}, std::string{}));

  Buffer<double> scales_;  // squared norms at first
  std::optional<Buffer<T>> sums_;
};

}  // namespace dist::nn
