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
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/segment_squares.hpp>
#include <dist/nn/segments.hpp>

namespace dist::nn {

namespace detail {

/// By what a parameter's gradients of that norm are multiplied. NaN stays NaN.
template <Real T>
[[nodiscard]] DIST_HD T scale_of(const ClipNorm& clip, T norm) {
  const T limit = T(double{clip.norm});
  return limit / select(norm <= limit, limit, norm);
}
/// By what all gradients, of that norm together, are multiplied: NaN unless all are finite.
template <Real T>
[[nodiscard]] DIST_HD T scale_of(const GlobalClipNorm& clip, T norm) {
  const T limit = T(double{clip.norm});
  return select(norm <= limit, T{1}, limit / norm) + (norm - norm);
}

/// Squared norms become scales.
template <class Clip>
struct ScaleBySquare {
  Clip clip;
  double* values;
  DIST_HD void operator()(std::size_t i) const { values[i] = scale_of(clip, std::sqrt(values[i])); }
};

}  // namespace detail

/// What an update applies for elements `share`, and by what that is multiplied: one scale for each segment, with a stride
/// of 1, or one for all, with a stride of 0.
template <class S, class T>
struct ScaledGradients {
  template <class U>
  using Span = typename S::Device::template Span<U>;

  Span<const T> gradients;
  Span<const double> scales;
  std::size_t stride = 0;
  IndexRange share = {};
};

/// Clips gradients by the norm of each parameter's (nn::ClipNorm), or of all together (nn::GlobalClipNorm): finds the
/// scales that an update then multiplies them with.
///
/// Norms are known when all is reduced. Until then each replica keeps the sums of its share of the gradients, so that
/// the replicas' gradients are read once; what needs no sum stays where it is.
template <class S, class T, class Clip>
class GradientClipping {
 public:
  static constexpr bool by_parameter = std::is_same_v<Clip, ClipNorm>;
  template <class U>
  using Span = typename S::Device::template Span<U>;

  /// Of so many elements in so many segments, for an optimizer of that name. Throws OutOfMemory.
  GradientClipping(S& strategy, std::size_t elements, std::size_t segments, std::string_view optimizer)
      : scales_(strategy.template buffer<double>(Shape{by_parameter ? segments : 1}, concat(optimizer, "/scales"))) {
    if (strategy.num_replicas_in_sync() > 1)
      sums_.emplace(strategy.template buffer<T>(Shape{elements}, concat(optimizer, "/sums")));
  }

  using Clipped = ScaledGradients<S, T>;

  /// The sums of the replicas' gradients, of this replica's share. A collective call.
  [[nodiscard]] Clipped reduce(const InReplica auto& replica, Span<T> gradient,
                               std::span<const detail::Segment> segments, const Clip& clip) const {
    const Span<double> squares = no_squares(replica);
    const Span<T> sums = sums_ ? sums_->component(replica) : gradient;
    IndexRange share{};
    if constexpr (is_here) {
      replica.reduce_scatter(sum, gradient, [&](std::size_t first, std::span<const T> reduced) {
        T* const kept = sums.data() + first;
        if (kept != reduced.data()) std::copy(reduced.begin(), reduced.end(), kept);
        detail::add_squares<by_parameter>(squares, segments, first, reduced);
        share = {share.size() == 0 ? first : share.begin, first + reduced.size()};
      });
    } else {
      share = replica.reduce_scatter(sum, gradient, sums);
      detail::put_squares<by_parameter>(replica.queue(), squares, segments, share, sums);
    }
    replica.all_reduce(sum, squares);
    return {sums, scales_from(replica, squares, clip), by_parameter ? 1U : 0U, share};
  }
  /// This replica's gradients as they are.
  [[nodiscard]] Clipped take(const InReplica auto& replica, Span<T> gradient, std::span<const detail::Segment> segments,
                             const Clip& clip) const {
    const Span<double> squares = no_squares(replica);
    const IndexRange all{0, gradient.size()};
    if constexpr (is_here)
      detail::add_squares<by_parameter>(squares, segments, 0, std::span<const T>{gradient});
    else
      detail::put_squares<by_parameter>(replica.queue(), squares, segments, all, gradient);
    return {gradient, scales_from(replica, squares, clip), by_parameter ? 1U : 0U, all};
  }

 private:
  static constexpr bool is_here = S::Device::Space::host_accessible;

  [[nodiscard]] Span<double> no_squares(const InReplica auto& replica) const {
    const Span<double> squares = scales_.component(replica);
    replica.queue().fill(squares, 0.0);
    return squares;
  }
  [[nodiscard]] static Span<const double> scales_from(const InReplica auto& replica, Span<double> squares,
                                                      const Clip& clip) {
    replica.for_each(squares.size(), detail::ScaleBySquare<Clip>{clip, squares.data()});
    return squares;
  }

  template <class U>
  using Buffer = decltype(std::declval<S&>().template buffer<U>(Shape{}, std::string{}));

  Buffer<double> scales_;  // squared norms at first
  std::optional<Buffer<T>> sums_;
};

}  // namespace dist::nn
