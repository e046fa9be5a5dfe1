#pragma once

#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// The mean over a row's elements of max(1 - target output, 0). Targets are 1 for yes, and -1 or 0 for no; they have the
/// outputs' shape.
struct Hinge {
  static constexpr std::string_view name = "hinge";

  template <Real T>
  [[nodiscard]] DIST_HD T element(T output, T target) const {
    const T margin = T{1} - sign(target) * output;
    using detail::chosen;
    return chosen(margin < T{0}, T{0}, margin);
  }
  /// NaN for NaN.
  template <Real T>
  [[nodiscard]] DIST_HD T slope(T output, T target) const {
    const T margin = T{1} - sign(target) * output;
    using detail::chosen;
    return chosen(margin < T{0}, T{0}, chosen(margin >= T{0}, -sign(target), margin));
  }

 private:
  template <class T>
  [[nodiscard]] static DIST_HD T sign(T target) {
    using detail::chosen;
    return chosen(target == T{0}, T{-1}, target);
  }
};

}  // namespace dist::nn
