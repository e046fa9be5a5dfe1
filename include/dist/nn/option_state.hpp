#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>  // and with it the parts of an update
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/gradient_accumulation.hpp>
#include <dist/nn/gradient_clipping.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/segments.hpp>
#include <dist/nn/tracked_parts.hpp>
#include <dist/nn/trust_ratios.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/slot_update.hpp>

namespace dist::nn {

/// An update that skips parameters without a gradient, and their slots.
template <class Update>
struct PresentUpdate {
  /// The update of parameters with a gradient.
  Update update;
  /// The parameters' ranges of elements.
  const detail::Segment* segments;
  /// The number of these ranges.
  std::size_t segment_count;
  const std::uint8_t* has_gradient;  ///< of each segment

  /// Returns `update(i, weight, gradient)`, or `weight` if the parameter lacks a gradient.
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

/// The state of the options of an optimizer function `O`, except slots, for parameters of type T. Applies options to
/// the gradients of calls and updates (spec P10, P11).
template <class S, class T, class O>
class OptionState {
  /// The option that clips by norm.
  using Clip = std::conditional_t<has_option<O, ClipNorm>, ClipNorm, GlobalClipNorm>;
  using Clipping = GradientClipping<S, T, Clip>;
  static constexpr bool has_segments = has_option<O, Clip> || has_option<O, WeightDecay> || ScalesByNorms<O>;
  static constexpr bool is_here = S::Device::Space::host_accessible;

 public:
  /// True if gradients are clipped by norm, which takes a second pass.
  static constexpr bool clips_norm = has_option<O, Clip>;
  /// True if each replica stores the values to apply for its share.
  static constexpr bool keeps_share = clips_norm || ScalesByNorms<O>;
  /// Elements in the memory of the replica's device.
  using Span = typename S::Device::template Span<T>;
  /// Elements for reading in the memory of the replica's device.
  using ConstSpan = typename S::Device::template Span<const T>;
  /// Gradients with the scale of each parameter.
  using Clipped = typename Clipping::Clipped;

  /// Throws OutOfMemory.
  template <class Network>
  OptionState(S& strategy, Network& network, const O& function) {
    const std::size_t parameters = network.parameters().size();
    if constexpr (has_segments || MayLackGradients<Network, ReplicaContext<S>>) {
      segments_ = detail::segments_of(
          network, [&](const std::string& parameter) { return detail::decays(function, parameter); });
      if constexpr (!is_here) lay_out(strategy);
    }
    if constexpr (clips_norm) clipping_.emplace(strategy, parameters, segments_.size(), O::name);
    if constexpr (ScalesByNorms<O> && !RemoteStore<typename S::Store>)
      ratios_.emplace(strategy, parameters, segments_.size(), O::name);
    if constexpr (has_option<O, AccumulateGradients>)
      accumulation_.emplace(strategy, parameters, O::name, detail::layout_of(network));
  }

  /// Returns the gradient to apply in this call: `gradient`, or with accumulation the mean of an update's calls in the
  /// last of them.
  [[nodiscard]] std::optional<Span> accumulated(const InReplica auto& replica, const O& function, Span gradient) const {
    if constexpr (has_option<O, AccumulateGradients>)
      return accumulation_->add(replica, gradient, function.template get<AccumulateGradients>().steps);
    return gradient;
  }

  /// Returns the gradients to apply in this call of a compiled step: an array per parameter of `layout`.
  template <class Array>
  [[nodiscard]] std::optional<std::vector<Array>> accumulated(const InTrace auto& trace, const O& function,
                                                              const auto& layout, std::vector<Array> gradients) const {
    if constexpr (has_option<O, AccumulateGradients>)
      return accumulation_->add(trace, layout, std::move(gradients),
                                function.template get<AccumulateGradients>().steps);
    else
      return gradients;
  }

  /// Returns the gradient, with scales if norms are clipped: the sums in this replica's share, or without `aggregate`
  /// its own gradients. A collective call if it aggregates and clips.
  template <bool aggregate>
  [[nodiscard]] Clipped clipped(const InReplica auto& replica, const O& function, Span gradient) const {
    if constexpr (!clips_norm)
      return {gradient, {}, 0, {0, gradient.size()}};
    else if constexpr (aggregate)
      return clipping_->reduce(replica, gradient, segments_, function.template get<Clip>());
    else
      return clipping_->take(replica, gradient, segments_, function.template get<Clip>());
  }

  /// Returns the gradients for the step's update: `clipped`, or if the optimizer scales by norms, the directions of the
  /// first pass with each parameter's trust ratio, in this replica's share, or of its gradients without `aggregate`.
  /// `update` is the update with slots; `present` is for `applied_to`. A collective call if it aggregates and scales.
  template <bool aggregate, class Update, class Present = detail::EveryParameter>
  [[nodiscard]] Clipped directed([[maybe_unused]] const InReplica auto& replica, [[maybe_unused]] const Update& update,
                                 [[maybe_unused]] Span gradient, const Clipped& clipped,
                                 [[maybe_unused]] ConstSpan weights,
                                 [[maybe_unused]] const Present& present = {}) const {
    if constexpr (!ScalesByNorms<O>) {
      return clipped;
    } else {
      const auto direction = applied_to(replica, dist::detail::direction_of(update), clipped, present);
      const auto decay = static_cast<double>(update.functor.decay);
      const detail::Segment* const table = table_on(replica);
      if constexpr (aggregate && !clips_norm)
        return ratios_->of_sums(replica, gradient, weights, segments_, table, decay, direction);
      else
        return ratios_->template of_share<aggregate>(replica, clipped, weights, segments_, table, decay, direction);
    }
  }

  /// Returns the step's update with each parameter's options. It skips parameters for which `present` is 0
  /// (MayLackGradients).
  template <class Update, class Present = detail::EveryParameter>
  [[nodiscard]] auto applied_to([[maybe_unused]] const InReplica auto& replica, const Update& update,
                                [[maybe_unused]] const Clipped& clipped,
                                [[maybe_unused]] const Present& present = {}) const {
    if constexpr (!std::is_same_v<Present, detail::EveryParameter>) {
      const auto updated = applied_to(replica, update, clipped);
      return PresentUpdate<std::remove_const_t<decltype(updated)>>{updated, segments_.data(), segments_.size(),
                                                                   present.data()};
    } else if constexpr (has_segments) {
      return SegmentedUpdate<Update>{update, table_on(replica), segments_.size(), clipped.scales.data(),
                                     clipped.stride};
    } else {
      return update;
    }
  }

  /// Tracks accumulated gradients. See Trackable.
  void track(auto& visit) {
    if constexpr (has_option<O, AccumulateGradients>) visit("accumulated", *accumulation_);
  }

 private:
  struct Nothing {};
  template <bool is_kept, class Value>
  using Kept = std::conditional_t<is_kept, std::optional<Value>, Nothing>;
  using Table = decltype(std::declval<S&>().template buffer<detail::Segment>(Shape{}, std::string{}));

  /// Copies the segments to each device.
  void lay_out(S& strategy) {
    table_.emplace(strategy.template buffer<detail::Segment>(Shape{segments_.size()}, concat(O::name, "/segments")));
    const auto scope = strategy.scope();
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local)
      dist::detail::copy_and_wait(table_->queue(scope, local), std::span<const detail::Segment>{segments_},
                                  table_->component(scope, local));
  }
  [[nodiscard]] const detail::Segment* table_on([[maybe_unused]] const InReplica auto& replica) const {
    if constexpr (is_here)
      return segments_.data();
    else
      return table_->component(replica).data();
  }

  std::vector<detail::Segment> segments_;
  [[no_unique_address]] Kept<!is_here, Table> table_ = {};  // only if updates cannot read the host's memory
  [[no_unique_address]] Kept<clips_norm, Clipping> clipping_ = {};
  [[no_unique_address]] Kept<ScalesByNorms<O>, TrustRatios<S, T>> ratios_ = {};
  [[no_unique_address]] Kept<has_option<O, AccumulateGradients>, GradientAccumulation<S, T>> accumulation_ = {};
};

}  // namespace dist::nn
