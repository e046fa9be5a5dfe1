/// What any optimizer can be told besides its own hyper-parameters: arguments of `nn::With`, with Keras' formulas. Each
/// has `check()`, which throws InvalidArgument for numbers out of range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/nn/check.hpp>

namespace dist::nn {

/// Every element of the aggregated gradient is cut to [-limit, limit] (spec P10; Keras' clipvalue).
struct ClipValue {
  float limit;

  void check() const { detail::require_positive("ClipValue", "limit", limit); }
};

/// The aggregated gradient of each parameter is multiplied by norm / max(its L2 norm, norm) (spec P10; Keras'
/// clipnorm). Between the norms and the update each replica keeps the sums of its share of the gradients.
struct ClipNorm {
  float norm;

  void check() const { detail::require_positive("ClipNorm", "norm", norm); }
};

/// The aggregated gradients are multiplied by norm min(1 / n, 1 / norm), n being the L2 norm of all of them together
/// (spec P10; Keras' global_clipnorm). A gradient that is not finite makes all of them NaN, as in Keras. Between the
/// norm and the update each replica keeps the sums of its share of the gradients.
struct GlobalClipNorm {
  float norm;

  void check() const { detail::require_positive("GlobalClipNorm", "norm", norm); }
};

/// Decoupled weight decay (Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019): before its update
/// every weight loses `rate` times the learning rate of itself (spec P11; Keras' weight_decay).
struct WeightDecay {
  float rate = 0.004f;
  /// Parameters with one of these in their name, such as "bias" or "dense_1/", keep their weights (Keras'
  /// exclude_from_weight_decay).
  std::vector<std::string> exclude = {};

  void check() const { detail::require_not_negative("WeightDecay", "rate", rate); }
  [[nodiscard]] bool applies_to(std::string_view parameter) const {
    return std::none_of(exclude.begin(), exclude.end(),
                        [&](const std::string& part) { return parameter.find(part) != std::string_view::npos; });
  }
};

/// A running average of the weights, a = momentum a + (1 - momentum) w after each update, kept in the last slot,
/// "average"; after the first update it is the weights (spec P11; Keras' use_ema).
struct AverageWeights {
  float momentum = 0.99f;
  /// The weights become their average after every so many updates; 0 for never.
  std::int64_t overwrite_frequency = 0;

  void check() const {
    detail::require_part("AverageWeights", "momentum", momentum);
    if (overwrite_frequency < 0)
      throw InvalidArgument("AverageWeights.overwrite_frequency is out of range", concat("it is ", overwrite_frequency),
                            "Give a number of updates, or 0 for never");
  }
};

/// `apply_gradients` adds up the gradients of so many calls, on each replica and without communication, and updates
/// with their mean in the last of them (Keras' gradient_accumulation_steps).
struct AccumulateGradients {
  std::int64_t steps;

  void check() const {
    if (steps < 1)
      throw InvalidArgument("AccumulateGradients.steps is out of range", concat("it is ", steps),
                            "Give the number of calls that make up an update, 1 or more");
  }
};

template <class Option>
inline constexpr bool is_clipping =
    std::is_same_v<Option, ClipValue> || std::is_same_v<Option, ClipNorm> || std::is_same_v<Option, GlobalClipNorm>;
template <class Option>
inline constexpr bool is_optimizer_option =
    is_clipping<Option> || std::is_same_v<Option, WeightDecay> || std::is_same_v<Option, AverageWeights> ||
    std::is_same_v<Option, AccumulateGradients>;

}  // namespace dist::nn
