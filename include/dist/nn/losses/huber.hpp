#pragma once

#include <concepts>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// The mean over a row's elements of d^2 / 2 where the difference |d| of output and target is at most `delta`, and of
/// delta |d| - delta^2 / 2 elsewhere (Huber: "Robust estimation of a location parameter", 1964). Targets have the outputs'
/// shape.
struct Huber {
  static constexpr std::string_view name = "huber";

  float delta = 1;

  /// Throws ShapeMismatch, and InvalidArgument for a delta that is not above 0.
  template <std::floating_point T, class Target, dist::Place Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Target, Where> targets) const {
    detail::require_positive(name, "delta", delta);
    require_targets(name, outputs, targets, outputs.row_size());
  }

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T difference = output - target;
    using detail::chosen;
    const T size = chosen(difference < T{0}, -difference, difference);
    const T limit = static_cast<T>(delta);
    return chosen(size <= limit, T(0.5) * difference * difference, limit * size - T(0.5) * limit * limit);
  }
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    const T difference = output - target;
    const T limit = static_cast<T>(delta);
    using detail::chosen;
    return chosen(difference > limit, limit, chosen(difference < -limit, -limit, difference));
  }
};

}  // namespace dist::nn
