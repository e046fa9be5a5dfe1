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

/// The parts of a label among `classes`, of which `smoothing` is spread over all of them evenly. Together they are 1.
template <class T>
struct SmoothedLabel {
  std::size_t label;
  T others;
  T right;

  DIST_HD SmoothedLabel(std::size_t of, std::size_t classes, float smoothing)
      : label(of),
        others(static_cast<T>(smoothing) / static_cast<T>(classes)),
        right(T{1} - static_cast<T>(smoothing) + others) {}
  [[nodiscard]] DIST_HD T operator()(std::size_t k) const { return k == label ? right : others; }

  [[nodiscard]] DIST_HD T total() const { return T{1}; }
  /// Each part times how far its logit is below the largest.
  [[nodiscard]] DIST_HD T distance(Row<const T> logits, std::size_t top) const {
    if (others == T{0}) return logits[top] - logits[label];
    T sum = 0;
    for (std::size_t k = 0; k < logits.size(); ++k) sum += logits[top] - logits[k];
    return others * sum + (right - others) * (logits[top] - logits[label]);
  }
  DIST_HD void subtract_from(Row<T> gradient, T scale) const {
    if (others != T{0})
      for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] -= scale * others;
    gradient[label] -= scale * (right - others);
  }
};
/// A row of parts, of which `smoothing` is spread over all classes evenly.
template <class T, class Target>
struct SmoothedTargets {
  Row<const Target> targets;
  T keep;
  T add;

  DIST_HD SmoothedTargets(Row<const Target> of, float smoothing)
      : targets(of),
        keep(T{1} - static_cast<T>(smoothing)),
        add(static_cast<T>(smoothing) / static_cast<T>(of.size())) {}
  [[nodiscard]] DIST_HD T operator()(std::size_t k) const { return static_cast<T>(targets[k]) * keep + add; }

  [[nodiscard]] DIST_HD T total() const {
    T sum = 0;
    for (std::size_t k = 0; k < targets.size(); ++k) sum += (*this)(k);
    return sum;
  }
  /// A class without a part may have a logit of -infinity.
  [[nodiscard]] DIST_HD T distance(Row<const T> logits, std::size_t top) const {
    T sum = 0;
    for (std::size_t k = 0; k < logits.size(); ++k)
      if (const T part = (*this)(k); part != T{0}) sum += part * (logits[top] - logits[k]);
    return sum;
  }
  DIST_HD void subtract_from(Row<T> gradient, T scale) const {
    for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] -= scale * (*this)(k);
  }
};

/// sum_k target_k (log(sum_j exp(x_j)) - x_k). With the largest logit taken out of the sum of exponentials nothing
/// overflows, and small losses keep their digits.
template <std::floating_point T, class Target>
[[nodiscard]] DIST_HD T crossentropy_of_logits(Row<const T> logits, const Target& target) {
  const std::size_t top = index_of_largest(logits);
  T others = 0;
  for (std::size_t k = 0; k < logits.size(); ++k)
    if (k != top) others += std::exp(logits[k] - logits[top]);
  return target.distance(logits, top) + target.total() * std::log1p(others);
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
  for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] *= normalise;
  target.subtract_from(gradient, scale);
  return target.distance(logits, top) + total * std::log1p(others);
}

}  // namespace dist::nn::detail
