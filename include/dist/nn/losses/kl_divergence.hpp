#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/crossentropy_of_row.hpp>

namespace dist::nn {

/// The Kullback-Leibler divergence of a row's outputs from its targets, both probabilities: the sum of target
/// log(target / output), with both clipped to [1e-7, 1] (as in Keras). Targets have the outputs' shape.
struct KlDivergence {
  static constexpr std::string_view name = "kl_divergence";
  static constexpr bool is_along_last_axis = true;

  template <class Outputs, class Targets>
    requires Real<typename Outputs::Element>
  [[nodiscard]] DIST_HD typename Outputs::Number per_example(Outputs outputs, Targets targets) const {
    using std::log;
    using Element = typename Outputs::Element;
    return sum_of(outputs, [&](auto k) {
      const Element target = clipped(static_cast<Element>(targets[k]));
      return target * log(target / clipped(outputs[k]));
    });
  }
  /// Returns the loss and writes its gradient, -target / output * scale, or 0 if the output is out of range.
  template <std::floating_point T, class Target>
  DIST_HD T per_example(Row<const T> outputs, Row<const Target> targets, T scale, Row<T> gradient) const {
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const bool is_out = outputs[k] < detail::probability_epsilon<T>() || outputs[k] > T{1};
      gradient[k] = is_out ? T{0} : -scale * clipped(static_cast<T>(targets[k])) / outputs[k];
    }
    return per_example(outputs, targets);
  }

 private:
  template <Real T>
  [[nodiscard]] static DIST_HD T clipped(T p) {
    return detail::clipped_to(p, detail::probability_epsilon<T>(), T{1});
  }
};

}  // namespace dist::nn
