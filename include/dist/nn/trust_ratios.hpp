#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <dist/context/replica_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/gradient_clipping.hpp>
#include <dist/nn/segments.hpp>
#include <dist/variable/slot_update.hpp>

namespace dist::nn {

namespace detail {

template <class Update, class T>
struct TakeDirection {
  Update update;
  const T* gradients;
  T* directions;
  DIST_HD void operator()(std::size_t i) const { directions[i] = update(i, T{}, gradients[i]); }
};

/// Computes a parameter's trust ratio from squared norms of weights and direction, after weight decay.
struct RatioOfNorms {
  double* weights;  // replaced by the ratio
  const double* directions;
  const Segment* segments;
  double decay;
  DIST_HD void operator()(std::size_t which) const {
    weights[which] = dist::detail::trust_ratio(weights[which], directions[which], segments[which].decays ? decay : 0);
  }
};

}  // namespace detail

/// The directions of a step that ScalesByNorms, and each parameter's trust ratio. Norms are known only after the whole
/// reduction: until then each replica stores its share's directions.
template <class S, class T>
class TrustRatios {
 public:
  /// Elements in the memory of the replica's device.
  template <class U>
  using Span = typename S::Device::template Span<U>;
  /// Directions with the trust ratio of each parameter.
  using Scaled = ScaledGradients<S, T>;

  /// Throws OutOfMemory.
  TrustRatios(S& strategy, std::size_t elements, std::size_t segments, std::string_view optimizer)
      : squares_(strategy.template buffer<double>(Shape{2 * segments}, concat(optimizer, "/ratios"))),
        directions_(strategy.template buffer<T>(Shape{elements}, concat(optimizer, "/directions"))) {}

  /// Return directions and scales: `of_sums` reduces the gradients first, `of_share` takes a share as it is. `update`
  /// is the first pass as an ElementUpdate, `decay` the second's weight decay. A collective call if the replica has
  /// only a share.
  template <class Update>
  [[nodiscard]] Scaled of_sums(const InReplica auto& replica, Span<T> gradient, Span<const T> weights,
                               std::span<const detail::Segment> segments, const detail::Segment* table, double decay,
                               const Update& update) const {
    const Span<T> directions = directions_.component(replica);
    const Span<double> squares = no_squares(replica);
    IndexRange share{};
    if constexpr (is_here) {
      replica.reduce_scatter(sum, gradient, [&](std::size_t first, std::span<const T> reduced) {
        take(squares, weights, directions, segments, first, reduced, update);
        share = {share.size() == 0 ? first : share.begin, first + reduced.size()};
      });
    } else {
      share = replica.reduce_scatter(sum, gradient, directions);
      put(replica.queue(), squares, weights, directions, segments, share, directions, update);
    }
    replica.all_reduce(sum, squares);
    return scaled(replica, squares, directions, table, decay, share);
  }
  /// Returns the directions of a share whose sums `given` are complete. With `aggregate`, norms include the shares of
  /// all replicas.
  template <bool aggregate, class Update>
  [[nodiscard]] Scaled of_share(const InReplica auto& replica, const Scaled& given, Span<const T> weights,
                                std::span<const detail::Segment> segments, const detail::Segment* table, double decay,
                                const Update& update) const {
    const Span<T> directions = directions_.component(replica);
    const Span<double> squares = no_squares(replica);
    if constexpr (is_here)
      take(squares, weights, directions, segments, given.share.begin,
           given.gradients.subspan(given.share.begin, given.share.size()), update);
    else
      put(replica.queue(), squares, weights, directions, segments, given.share, given.gradients, update);
    if constexpr (aggregate) replica.all_reduce(sum, squares);
    return scaled(replica, squares, directions, table, decay, given.share);
  }

 private:
  static constexpr bool is_here = S::Device::Space::host_accessible;

  /// Returns the squared norms, reset to 0: weights, then directions.
  [[nodiscard]] Span<double> no_squares(const InReplica auto& replica) const {
    const Span<double> squares = squares_.component(replica);
    replica.queue().fill(squares, 0.0);
    return squares;
  }
  template <class Update>
  static void take(std::span<double> squares, std::span<const T> weights, std::span<T> directions,
                   std::span<const detail::Segment> segments, std::size_t first, std::span<const T> gradients,
                   const Update& update) {
    const std::span<T> here = directions.subspan(first, gradients.size());
    dist::detail::update_range(update, first, here, gradients);
    detail::add_squares<true>(squares.first(segments.size()), segments, first,
                              weights.subspan(first, gradients.size()));
    detail::add_squares<true>(squares.subspan(segments.size()), segments, first, std::span<const T>{here});
  }
  template <class Update>
  static void put(const auto& queue, Span<double> squares, Span<const T> weights, Span<T> directions,
                  std::span<const detail::Segment> segments, IndexRange share, Span<const T> gradients,
                  const Update& update) {
    queue.for_each(share, detail::TakeDirection<Update, T>{update, gradients.data(), directions.data()});
    detail::put_squares<true>(queue, squares.subspan(0, segments.size()), segments, share, weights);
    detail::put_squares<true>(queue, squares.subspan(segments.size(), segments.size()), segments, share, directions);
  }
  [[nodiscard]] static Scaled scaled(const InReplica auto& replica, Span<double> squares, Span<const T> directions,
                                     const detail::Segment* table, double decay, IndexRange share) {
    const std::size_t segments = squares.size() / 2;
    replica.for_each(segments, detail::RatioOfNorms{squares.data(), squares.data() + segments, table, decay});
    return {directions, squares.subspan(0, segments), 1, share};
  }

  template <class U>
  using Buffer = decltype(std::declval<S&>().template buffer<U>(Shape{}, std::string{}));

  Buffer<double> squares_;
  Buffer<T> directions_;
};

}  // namespace dist::nn
