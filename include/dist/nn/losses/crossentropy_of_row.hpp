/// Functions of a row of outputs and of the classes' target probabilities, for cross-entropies with label smoothing.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn::detail {

/// Distance of clipped probabilities from 0 and 1: Keras' epsilon.
template <class T>
[[nodiscard]] DIST_HD constexpr T probability_epsilon() {
  return T(1e-7);
}

/// Clips p; NaN stays NaN.
template <class T>
[[nodiscard]] DIST_HD T clipped_to(T p, T least, T most) {
  return select(p < least, least, select(p > most, most, p));
}
template <class T>
[[nodiscard]] DIST_HD T clipped_probability(T p) {
  return clipped_to(p, probability_epsilon<T>(), T{1} - probability_epsilon<T>());
}
/// Returns `slope`, or 0 where the loss is constant because the probability is clipped.
template <class T>
[[nodiscard]] DIST_HD T unless_clipped(T p, T slope) {
  const T least = probability_epsilon<T>();
  return select(p < least, T{0}, select(p > T{1} - least, T{0}, slope));
}

/// The target probabilities of a label, with `smoothing` spread evenly over all classes. They add up to 1.
template <class Outputs, class Label>
struct SmoothedLabel {
  using Element = typename Outputs::Element;
  using Number = typename Outputs::Number;
  Label label;
  bool is_smoothed;
  Element others;
  Element right;

  DIST_HD SmoothedLabel(Label of, std::size_t classes, float smoothing)
      : label(of),
        is_smoothed(smoothing != 0),
        others(static_cast<Element>(smoothing) / static_cast<Element>(static_cast<float>(classes))),
        right(Element{1} - static_cast<Element>(smoothing) + others) {}
  [[nodiscard]] DIST_HD Element operator()(auto k) const { return select(k == label, right, others); }

  [[nodiscard]] DIST_HD Number total() const { return Number{1}; }
  /// Returns the mean distance of logits from the largest, weighted by the target probabilities.
  [[nodiscard]] DIST_HD Number distance(Outputs logits, Number largest) const {
    if (!is_smoothed) return largest - logits[label];
    return sum_of(logits, [&](auto k) { return (*this)(k) * (largest - logits[k]); });
  }
};
/// Target probabilities, with `smoothing` spread evenly over all classes.
template <class Outputs, class Targets>
struct SmoothedTargets {
  using Element = typename Outputs::Element;
  using Number = typename Outputs::Number;
  Targets targets;
  Element keep;
  Element add;

  DIST_HD SmoothedTargets(Targets of, std::size_t classes, float smoothing)
      : targets(of),
        keep(Element{1} - static_cast<Element>(smoothing)),
        add(static_cast<Element>(smoothing) / static_cast<Element>(static_cast<float>(classes))) {}
  [[nodiscard]] DIST_HD Element operator()(auto k) const { return static_cast<Element>(targets[k]) * keep + add; }

  [[nodiscard]] DIST_HD Number total() const {
    return sum_of(targets, [&](auto k) { return (*this)(k); });
  }
  /// Returns the sum of distances of logits from the largest, weighted by the targets. A class with target 0 may have
  /// logit -infinity.
  [[nodiscard]] DIST_HD Number distance(Outputs logits, Number largest) const {
    return sum_of(logits, [&](auto k) {
      const Element part = (*this)(k);
      return select(part == Element{0}, Element{0}, part * (largest - logits[k]));
    });
  }
};

/// Returns exp(x), or 0 without computing it if `left_out`.
template <std::floating_point T>
[[nodiscard]] DIST_HD T exp_unless(bool left_out, T x) {
  return left_out ? T{0} : std::exp(x);
}

/// Returns `sum_k target_k (log(sum_j exp(x_j)) - x_k)`. The largest logit is subtracted first, so exponentials do not
/// overflow and small losses are precise.
template <class Logits, class Target>
[[nodiscard]] DIST_HD typename Logits::Number crossentropy_of_logits(Logits logits, const Target& target) {
  using std::log1p;
  using Number = typename Logits::Number;
  const auto top = index_of_largest(logits);
  const Number largest = logits[top];
  const Number others = sum_of(logits, [&](auto k) { return exp_unless(k == top, logits[k] - largest); });
  return target.distance(logits, largest) + target.total() * log1p(others);
}
/// Returns the cross-entropy and writes its gradient, `(softmax(logits)_k sum_j target_j - target_k) * scale`.
template <std::floating_point T, class Target>
[[nodiscard]] DIST_HD T crossentropy_of_logits(Row<const T> logits, const Target& target, T scale, Row<T> gradient) {
  const std::size_t top = index_of_largest(logits);
  T others = 0;
  for (std::size_t k = 0; k < logits.size(); ++k) {
    gradient[k] = std::exp(logits[k] - logits[top]);
    if (k != top) others += gradient[k];
  }
  const T total = target.total();
  const T normalise = total * scale / (T{1} + others);
  for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] = gradient[k] * normalise - scale * target(k);
  return target.distance(logits, logits[top]) + total * std::log1p(others);
}

}  // namespace dist::nn::detail
