/// What cross-entropies of classes share: each is a function of a row of outputs and of the part of the right answer that
/// each class has, which may be spread over all classes.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn::detail {

/// How near to 0 and to 1 a probability comes in a logarithm: Keras' epsilon.
template <class T>
[[nodiscard]] DIST_HD constexpr T probability_epsilon() {
  return T(1e-7);
}

/// NaN stays NaN.
template <class T>
[[nodiscard]] DIST_HD T clipped_to(T p, T least, T most) {
  return select(p < least, least, select(p > most, most, p));
}
template <class T>
[[nodiscard]] DIST_HD T clipped_probability(T p) {
  return clipped_to(p, probability_epsilon<T>(), T{1} - probability_epsilon<T>());
}
/// `slope` where that leaves the probability as it is, or makes it NaN; elsewhere 0, as the loss does not change with it.
template <class T>
[[nodiscard]] DIST_HD T unless_clipped(T p, T slope) {
  const T least = probability_epsilon<T>();
  return select(p < least, T{0}, select(p > T{1} - least, T{0}, slope));
}

/// The parts of a label among the classes of a row of outputs, of which `smoothing` is spread over all of them evenly.
/// Together they are 1.
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
  /// The sum of each part times how far its logit is below the largest.
  [[nodiscard]] DIST_HD Number distance(Outputs logits, Number largest) const {
    if (!is_smoothed) return largest - logits[label];
    return sum_of(logits, [&](auto k) { return (*this)(k) * (largest - logits[k]); });
  }
};
/// A row of parts, of which `smoothing` is spread over all classes evenly.
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
  /// A class without a part may have a logit of -infinity.
  [[nodiscard]] DIST_HD Number distance(Outputs logits, Number largest) const {
    return sum_of(logits, [&](auto k) {
      const Element part = (*this)(k);
      return select(part == Element{0}, Element{0}, part * (largest - logits[k]));
    });
  }
};

/// exp(x), and 0 without computing it where the host knows that `left_out`.
template <std::floating_point T>
[[nodiscard]] DIST_HD T exp_unless(bool left_out, T x) {
  return left_out ? T{0} : std::exp(x);
}

/// sum_k target_k (log(sum_j exp(x_j)) - x_k). With the largest logit taken out of the sum of exponentials nothing
/// overflows, and small losses keep their digits.
template <class Logits, class Target>
[[nodiscard]] DIST_HD typename Logits::Number crossentropy_of_logits(Logits logits, const Target& target) {
  using std::log1p;
  using Number = typename Logits::Number;
  const auto top = index_of_largest(logits);
  const Number largest = logits[top];
  const Number others = sum_of(logits, [&](auto k) { return exp_unless(k == top, logits[k] - largest); });
  return target.distance(logits, largest) + target.total() * log1p(others);
}
/// The same, and its gradient, (softmax(logits)_k sum_j target_j - target_k) * scale.
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
