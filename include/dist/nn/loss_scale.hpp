#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/values.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

/// The options of Keras' LossScaleOptimizer.
struct LossScaleOptions {
  double initial = 32768;            ///< at least 1
  std::int64_t growth_steps = 2000;  ///< consecutive steps with finite gradients before the scale doubles, at least 1
};

namespace detail {
template <class T>
struct TimesFactor {
  T* values;
  T factor;
  DIST_HD void operator()(std::size_t i) const { values[i] *= factor; }
};
/// Multiplies an element, and returns 1 if the product is infinite or NaN.
template <class T>
struct CountNotFinite {
  TimesFactor<T> times;
  DIST_HD std::int64_t operator()(std::size_t i) const {
    times(i);
    return times.values[i] - times.values[i] == T{0} ? 0 : 1;
  }
};
}  // namespace detail

/// A factor of the loss that keeps gradients in the range of Float16 (spec P22), as in Keras' LossScaleOptimizer. If a
/// gradient of any replica is not finite, it is halved, down to 1, and the step is skipped. After `growth_steps` good
/// steps in a row it is doubled. The host decides in each step, so compiled steps cannot use it. A Model has its own,
/// except with the option NoLossScale.
///
///     nn::LossScale scale{strategy};
///     ...
///     const auto loss = nn::sparse_categorical_crossentropy(replica, logits, labels, global_batch);
///     scale.apply(replica, logits);  // between the loss and backward
///     net.backward(replica, loss);
///     if (scale.remove(replica, net)) optimizer.apply_gradients(replica);
///
/// Source: Micikevicius et al., "Mixed Precision Training", ICLR 2018.
template <class S>
class LossScale {
 public:
  /// Throws InvalidArgument for options out of range, and OutOfMemory.
  explicit LossScale(S& strategy, LossScaleOptions options = {})
      : growth_steps_(options.growth_steps),
        value_(strategy.template host_variable<double, OnWrite, OnlyFirstReplica>(Shape{}, options.initial,
                                                                                  "loss_scale/value")),
        good_steps_(strategy.template host_variable<std::int64_t, OnWrite, OnlyFirstReplica>(Shape{}, std::int64_t{0},
                                                                                             "loss_scale/good_steps")) {
    if (!(options.initial >= 1 && options.initial <= 1e30) || options.growth_steps < 1)
      throw InvalidArgument("The options of a loss scale are out of range",
                            concat("initial ", options.initial, ", growth_steps ", options.growth_steps),
                            "Give an initial scale from 1 to 1e30, and at least one growth step");
  }

  /// Returns the factor of the next step.
  [[nodiscard]] double value(const auto& context) const { return value_.value(context); }

  /// Multiplies the gradient of a loss by the factor.
  void apply(const InReplica auto& replica, const DifferentiableOutputs auto& outputs) const {
    using T = std::remove_const_t<typename decltype(outputs.values)::Element>;
    replica.queue().for_each({0, outputs.gradient.size()},
                             detail::TimesFactor<T>{outputs.gradient.data(), static_cast<T>(value(replica))});
  }

  /// Divides the network's gradients by the factor, and adapts it. True if all replicas' gradients are finite; if not,
  /// they must not be applied. A collective call, which waits for the replica's queue.
  template <class Network>
  [[nodiscard]] bool remove(const InReplica auto& replica, Network& network) {
    const auto gradients = std::as_const(network).gradients().component(replica);
    using T = typename decltype(gradients)::value_type;
    const double scale = value(replica);
    const detail::CountNotFinite<T> unscale{{gradients.data(), static_cast<T>(1 / scale)}};
    const std::int64_t here = replica.queue().transform_reduce(sum, {0, gradients.size()}, unscale);
    const bool is_finite = replica.all_reduce(sum, here) == 0;
    const std::int64_t good = is_finite ? good_steps_.value(replica) + 1 : 0;
    const bool grows = good >= growth_steps_;
    if (!is_finite) detail::discard_gradients(network, replica);
    value_.assign(replica, same(grows ? scale * 2 : is_finite ? scale : scale > 2 ? scale / 2 : 1));
    good_steps_.assign(replica, same(grows ? 0 : good));
    return is_finite;
  }

  /// Reports that compiled steps cannot use a loss scale.
  template <InTrace Trace>
  void apply(const Trace&, const auto&) const {
    refuse<Trace>();
  }
  /// Reports that compiled steps cannot use a loss scale.
  template <InTrace Trace>
  [[nodiscard]] bool remove(const Trace&, auto&) {
    refuse<Trace>();
    return false;
  }

  /// See Trackable.
  void track(auto& visit) {
    visit("value", value_);
    visit("good_steps", good_steps_);
  }

 private:
  template <class T>
  using Variable =
      decltype(std::declval<S&>().template host_variable<T, OnWrite, OnlyFirstReplica>(Shape{}, T{}, std::string{}));

  template <class Trace>
  static void refuse() {
    static_assert(dist::detail::always_false<Trace>,
                  "an nn::LossScale is updated on the host after each step, but a compiled step runs entirely on "
                  "devices: compute with dist::BFloat16, which needs no scale, or call strategy.run");
  }

  std::int64_t growth_steps_;
  Variable<double> value_;
  Variable<std::int64_t> good_steps_;
};

/// Deduces the strategy.
template <Strategy S>
LossScale(S&, LossScaleOptions) -> LossScale<S>;

template <dist::detail::NoStrategy S>
struct LossScale<S> : dist::detail::Refused {
  using Refused::Refused;
  static_assert(dist::detail::always_false<S>,
                DIST_NEEDS_STRATEGY("an nn::LossScale", "nn::LossScale scale{strategy}"));
};

}  // namespace dist::nn
