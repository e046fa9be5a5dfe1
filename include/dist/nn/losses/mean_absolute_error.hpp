#pragma once

#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// The mean over a row's elements of |output - target|, with slope 0 where they are equal. Targets have the outputs' shape.
struct MeanAbsoluteError {
  static constexpr std::string_view name = "mean_absolute_error";

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T difference = output - target;
    using detail::chosen;
    return chosen(difference < T{0}, -difference, difference);
  }
  /// The sign of the difference, NaN for NaN.
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    const T difference = output - target;
    using detail::chosen;
    return chosen(difference > T{0}, T{1}, chosen(difference < T{0}, T{-1}, difference));
  }
};

}  // namespace dist::nn
