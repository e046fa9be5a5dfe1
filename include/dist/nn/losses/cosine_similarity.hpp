#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// The negative cosine between a row of outputs and its targets: -1 for equal directions, 1 for opposite ones. Rows are
/// divided by their norms, at least 1e-7 (as in Keras); outputs with a smaller norm have gradient 0. Targets have the
/// outputs' shape.
struct CosineSimilarity {
  static constexpr std::string_view name = "cosine_similarity";
  static constexpr bool is_along_last_axis = true;

  template <class Outputs, class Targets>
    requires Real<typename Outputs::Element>
  [[nodiscard]] DIST_HD typename Outputs::Number per_example(Outputs outputs, Targets targets) const {
    return -cosine(outputs, targets, norm(squares<typename Outputs::Element>(outputs)),
                   norm(squares<typename Outputs::Element>(targets)));
  }
  /// Returns the loss and writes its gradient, (cosine * output / |outputs| - target / |targets|) / |outputs| * scale.
  template <std::floating_point T, class Target>
  DIST_HD T per_example(Row<const T> outputs, Row<const Target> targets, T scale, Row<T> gradient) const {
    const T of_outputs = squares<T>(outputs);
    const T output_norm = norm(of_outputs), target_norm = norm(squares<T>(targets));
    const T cosine_of_row = cosine(outputs, targets, output_norm, target_norm);
    const T factor = is_small(of_outputs) ? T{0} : scale / output_norm;
    for (std::size_t k = 0; k < outputs.size(); ++k)
      gradient[k] = factor * (cosine_of_row * (outputs[k] / output_norm) - static_cast<T>(targets[k]) / target_norm);
    return -cosine_of_row;
  }

 private:
  template <class Element, class R>
  [[nodiscard]] static DIST_HD auto squares(R row) {
    return sum_of(row, [&](auto k) {
      const auto x = static_cast<Element>(row[k]);
      return x * x;
    });
  }
  template <class Number>
  [[nodiscard]] static DIST_HD auto is_small(Number squares) {
    return squares < Number(1e-14);
  }
  /// Returns the norm, at least 1e-7. The operand of sqrt is always above 0, because the slope at 0 is infinite.
  template <class Number>
  [[nodiscard]] static DIST_HD Number norm(Number squares) {
    using detail::select;
    using std::sqrt;
    const Number root = sqrt(select(is_small(squares), Number{1}, squares));
    return select(is_small(squares), Number(1e-7), root);
  }
  template <class Outputs, class Targets, class Number>
  [[nodiscard]] static DIST_HD Number cosine(Outputs outputs, Targets targets, Number output_norm, Number target_norm) {
    using Element = typename Outputs::Element;
    const Number both = sum_of(outputs, [&](auto k) { return outputs[k] * static_cast<Element>(targets[k]); });
    return (both / target_norm) / output_norm;
  }
};

}  // namespace dist::nn
