#pragma once

#include <cmath>
#include <concepts>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/crossentropy_of_row.hpp>

namespace dist::nn {

/// Cross-entropy between logits and targets from 0 (no) to 1 (yes): the mean of log(1 + exp(x)) - target x over a row's
/// elements. The network must not end in a sigmoid, unless `from_logits` is false: then outputs are probabilities p,
/// clipped to [1e-7, 1 - 1e-7] (as in Keras), with loss -(target log p + (1 - target) log(1 - p)). Targets have the
/// outputs' shape.
struct BinaryCrossentropy {
  static constexpr std::string_view name = "binary_crossentropy";

  /// True if outputs are logits, false if they are probabilities.
  bool from_logits = true;
  /// Moves targets towards 0.5 by this fraction of the distance.
  float label_smoothing = 0;

  /// Throws ShapeMismatch, and InvalidArgument for a smoothing out of range.
  template <std::floating_point T, class Target, dist::MemorySpace Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Target, Where> targets) const {
    detail::require_part(name, "label_smoothing", label_smoothing);
    require_targets(name, outputs, targets, outputs.row_size());
  }

  /// Returns the loss without overflow: max(x, 0) - target x + log(1 + exp(-|x|)).
  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    using detail::select;
    using std::exp;
    using std::log;
    using std::log1p;
    const T part = smoothed(target);
    if (!from_logits) {
      const T p = detail::clipped_probability(output);
      return -(part * log(p) + (T{1} - part) * log(T{1} - p));
    }
    const T size = select(output < T{0}, -output, output);
    return select(output > T{0}, output, T{0}) - part * output + log1p(exp(-size));
  }
  /// Returns the derivative by the output: sigmoid(x) - target for logits.
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    using detail::select;
    using std::exp;
    const T part = smoothed(target);
    if (!from_logits) return detail::unless_clipped(output, (T{1} - part) / (T{1} - output) - part / output);
    const T power = exp(select(output < T{0}, output, -output));
    return select(output < T{0}, power, T{1}) / (T{1} + power) - part;
  }

 private:
  template <class T>
  [[nodiscard]] DIST_HD T smoothed(T target) const {
    const T smoothing = static_cast<T>(label_smoothing);
    return target * (T{1} - smoothing) + T(0.5) * smoothing;
  }
};

}  // namespace dist::nn
