#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/context/replica_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/segments.hpp>

namespace dist::nn {

namespace detail {

/// Returns the factor for a parameter's gradients with this norm. NaN stays NaN.
template <Real T>
[[nodiscard]] DIST_HD T scale_of(const ClipNorm& clip, T norm) {
  const T limit = T(double{clip.norm});
  return limit / select(norm <= limit, limit, norm);
}
/// Returns the factor for all gradients with this global norm: NaN unless all are finite.
template <Real T>
[[nodiscard]] DIST_HD T scale_of(const GlobalClipNorm& clip, T norm) {
  const T limit = T(double{clip.norm});
  return select(norm <= limit, T{1}, limit / norm) + (norm - norm);
}

/// Replaces squared norms by scales.
template <class Clip>
struct ScaleBySquare {
  Clip clip;
  double* values;
  DIST_HD void operator()(std::size_t i) const { values[i] = scale_of(clip, std::sqrt(values[i])); }
};

}  // namespace detail

/// The gradients of elements `share`, with one scale per segment (stride 1), or one for all (stride 0).
template <class S, class T>
struct ScaledGradients {
  /// Elements in the memory of the replica's device.
  template <class U>
  using Span = typename S::Device::template Span<U>;

  Span<const T> gradients;    ///< at the parameters' positions, valid in `share`
  Span<const double> scales;  ///< one for each segment, or one for all
  std::size_t stride = 0;     ///< distance of two segments' scales: 1, or 0 if all share one
  IndexRange share = {};      ///< the elements that this replica updates
};

/// Clips gradients by each parameter's norm (nn::ClipNorm) or by the global norm (nn::GlobalClipNorm): computes scales
/// that an update multiplies with.
///
/// Norms are known only after the whole reduction. Until then each replica keeps the sums of its share, so the
/// replicas' gradients are read once. Gradients that need no sum are not copied.
template <class S, class T, class Clip>
class GradientClipping {
 public:
  /// True if each parameter has its own norm.
  static constexpr bool by_parameter = std::is_same_v<Clip, ClipNorm>;
  /// Elements in the memory of the replica's device.
  template <class U>
  using Span = typename S::Device::template Span<U>;

  /// Throws OutOfMemory.
  GradientClipping(S& strategy, std::size_t elements, std::size_t segments, std::string_view optimizer)
      : scales_(strategy.template buffer<double>(Shape{by_parameter ? segments : 1}, concat(optimizer, "/scales"))) {
    if (strategy.num_replicas_in_sync() > 1)
      sums_.emplace(strategy.template buffer<T>(Shape{elements}, concat(optimizer, "/sums")));
  }

  /// The clipped gradients of a replica's share.
  using Clipped = ScaledGradients<S, T>;

  /// Returns the sums of the replicas' gradients in this replica's share. A collective call.
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
  /// Returns this replica's own gradients, without reduction.
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
