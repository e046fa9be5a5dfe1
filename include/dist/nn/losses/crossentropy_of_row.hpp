/// What cross-entropies of classes share: each is a function of a row of outputs and of `target(k)`, the part of the right
/// answer that class k has, which may be spread over all classes.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/losses/values.hpp>

namespace dist::nn::detail {

/// How near to 0 and to 1 a probability comes in a logarithm: Keras' epsilon.
template <std::floating_point T>
inline constexpr T probability_epsilon = T(1e-7);

template <std::floating_point T>
[[nodiscard]] DIST_HD T clipped_probability(T p) {
  const T least = probability_epsilon<T>;
  return p < least ? least : p > T{1} - least ? T{1} - least : p;
}
/// Whether that leaves it as it is: where it does not, the loss does not change with it. NaN stays NaN.
template <std::floating_point T>
[[nodiscard]] DIST_HD bool is_clipped_probability(T p) {
  return p < probability_epsilon<T> || p > T{1} - probability_epsilon<T>;
}

/// The parts of a label among `classes`, of which `smoothing` is spread over all of them evenly.
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
};

/// sum_k target_k (log(sum_j exp(x_j)) - x_k), of all but the exponentials. With the largest logit taken out of their sum
/// nothing overflows, and small losses keep their digits; a class without a part may have a logit of -infinity.
template <std::floating_point T, class Target>
[[nodiscard]] DIST_HD T crossentropy_from_others(Row<const T> logits, const Target& target, std::size_t top, T others) {
  const T rest = std::log1p(others);
  T loss = 0;
  for (std::size_t k = 0; k < logits.size(); ++k) {
    const T part = target(k);
    if (part != T{0}) loss += part * ((logits[top] - logits[k]) + rest);
  }
  return loss;
}
template <std::floating_point T, class Target>
[[nodiscard]] DIST_HD T crossentropy_of_logits(Row<const T> logits, const Target& target) {
  const std::size_t top = index_of_largest(logits);
  T others = 0;
  for (std::size_t k = 0; k < logits.size(); ++k)
    if (k != top) others += std::exp(logits[k] - logits[top]);
  return crossentropy_from_others(logits, target, top, others);
}
/// The same, and its gradient, (softmax(logits)_k sum_j target_j - target_k) * scale.
template <std::floating_point T, class Target>
[[nodiscard]] DIST_HD T crossentropy_of_logits(Row<const T> logits, const Target& target, T scale, Row<T> gradient) {
  const std::size_t top = index_of_largest(logits);
  T others = 0;
  T parts = 0;
  for (std::size_t k = 0; k < logits.size(); ++k) {
    gradient[k] = std::exp(logits[k] - logits[top]);
    if (k != top) others += gradient[k];
    parts += target(k);
  }
  const T normalise = parts * scale / (T{1} + others);
  for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] = gradient[k] * normalise - scale * target(k);
  return crossentropy_from_others(logits, target, top, others);
}

}  // namespace dist::nn::detail
