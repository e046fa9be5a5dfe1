#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// The negative cosine of the angle between a row of outputs and its targets: -1 where they have one direction, 1 where they
/// have opposite ones. Rows are divided by their norms, or by 1e-7 where these are smaller (as in Keras); such a row of
/// outputs has no direction, and its gradient is 0. Targets have the outputs' shape.
struct CosineSimilarity {
  static constexpr std::string_view name = "cosine_similarity";

  template <std::floating_point T, class Target>
  [[nodiscard]] DIST_HD T per_example(Row<const T> outputs, Row<const Target> targets) const {
    const Products<T> of = products(outputs, targets);
    return -(of.both / of.targets) / of.outputs;
  }
  /// The gradient is (cosine * output / |outputs| - target / |targets|) / |outputs| * scale.
  template <std::floating_point T, class Target>
  DIST_HD T per_example(Row<const T> outputs, Row<const Target> targets, T scale, Row<T> gradient) const {
    const Products<T> of = products(outputs, targets);
    const T cosine = (of.both / of.targets) / of.outputs;
    const T factor = of.has_direction ? scale / of.outputs : T{0};
    for (std::size_t k = 0; k < outputs.size(); ++k)
      gradient[k] = factor * (cosine * (outputs[k] / of.outputs) - static_cast<T>(targets[k]) / of.targets);
    return -cosine;
  }

 private:
  template <class T>
  struct Products {
    T both;
    T outputs;  // norms
    T targets;
    bool has_direction;
  };
  template <class T, class Target>
  [[nodiscard]] static DIST_HD Products<T> products(Row<const T> outputs, Row<const Target> targets) {
    T both = 0, of_outputs = 0, of_targets = 0;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const T target = static_cast<T>(targets[k]);
      both += outputs[k] * target;
      of_outputs += outputs[k] * outputs[k];
      of_targets += target * target;
    }
    const T least = T(1e-7);
    const T output_norm = std::sqrt(of_outputs), target_norm = std::sqrt(of_targets);
    return {both, output_norm < least ? least : output_norm, target_norm < least ? least : target_norm,
            !(output_norm < least)};
  }
};

}  // namespace dist::nn
