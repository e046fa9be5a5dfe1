#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/replica_context.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/gradient_accumulation.hpp>
#include <dist/nn/gradient_clipping.hpp>
#include <dist/nn/optimizers/segmented_update.hpp>
#include <dist/nn/optimizers/segments.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist::nn {

/// What an optimizer keeps for the options of its function `O` besides slots, for parameters of elements T, and what they
/// make of the gradients of a call and of the step's update (spec P10, P11).
template <class S, class T, class O>
class OptionState {
  /// What norms are clipped by, if they are.
  using Clip = std::conditional_t<has_option<O, ClipNorm>, ClipNorm, GlobalClipNorm>;
  using Clipping = GradientClipping<S, T, Clip>;
  static constexpr bool has_segments = has_option<O, Clip> || has_option<O, WeightDecay>;
  static constexpr bool is_here = S::Device::Place::host_accessible;

 public:
  static constexpr bool clips_norm = has_option<O, Clip>;
  using Span = typename S::Device::template Span<T>;
  using Clipped = typename Clipping::Clipped;

  /// Throws OutOfMemory.
  template <class Network>
  OptionState(S& strategy, Network& network, const O& function) {
    const std::size_t parameters = network.parameters().size();
    if constexpr (has_segments) {
      segments_ = detail::segments_of(network, [&](const std::string& parameter) {
        if constexpr (has_option<O, WeightDecay>) return function.template get<WeightDecay>().applies_to(parameter);
        return true;
      });
      if constexpr (!is_here) lay_out(strategy);
    }
    if constexpr (clips_norm) clipping_.emplace(strategy, parameters, segments_.size(), O::name);
    if constexpr (has_option<O, AccumulateGradients>) accumulation_.emplace(strategy, parameters, O::name);
  }

  /// What this call applies of its `gradient`: the mean of several calls' where these make up one update, and nothing
  /// before the last of these.
  [[nodiscard]] std::optional<Span> accumulated(const InReplica auto& replica, const O& function, Span gradient) const {
    if constexpr (has_option<O, AccumulateGradients>)
      return accumulation_->add(replica, gradient, function.template get<AccumulateGradients>().steps);
    return gradient;
  }

  /// The gradient with the scales of its parameters where norms are clipped: the sums of the replicas' gradients, of
  /// this replica's share, or with `aggregate` false this replica's own. A collective call where it aggregates and clips.
  template <bool aggregate>
  [[nodiscard]] Clipped clipped(const InReplica auto& replica, const O& function, Span gradient) const {
    if constexpr (!clips_norm)
      return {gradient, {}};
    else if constexpr (aggregate)
      return clipping_->reduce(replica, gradient, segments_, function.template get<Clip>());
    else
      return clipping_->take(replica, gradient, segments_, function.template get<Clip>());
  }

  /// The step's update, which looks up what the options mean for the parameter of an element.
  template <class Update>
  [[nodiscard]] auto applied_to([[maybe_unused]] const InReplica auto& replica, const Update& update,
                                [[maybe_unused]] const Clipped& clipped) const {
    if constexpr (has_segments)
      return SegmentedUpdate<Update>{update, table_on(replica), segments_.size(), clipped.scales.data(),
                                     Clipping::by_parameter ? 1U : 0U};
    else
      return update;
  }

  /// Gradients that are being accumulated. See Trackable.
  void track(auto& visit) {
    if constexpr (has_option<O, AccumulateGradients>) visit("accumulated", *accumulation_);
  }

 private:
  using Table = decltype(std::declval<S&>().template buffer<detail::Segment>(Shape{}, std::string{}));

  /// Copies the segments to where updates look them up.
  void lay_out(S& strategy) {
    table_.emplace(strategy.template buffer<detail::Segment>(Shape{segments_.size()}, text(O::name, "/segments")));
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
  std::optional<Table> table_;  // where the host's memory is out of the updates' reach
  std::optional<Clipping> clipping_;
  std::optional<GradientAccumulation<S, T>> accumulation_;
};

}  // namespace dist::nn
