/// Updates of two passes, of optimizers that scale the step of a parameter by norms of it: the first makes of all gradients the
/// directions, the second goes there, as far as the trust ratio says.
#pragma once

#include <cstddef>
#include <span>

#include <dist/core/config.hpp>
#include <dist/core/square_root.hpp>
#include <dist/variable/slot_update.hpp>

namespace dist::detail {

/// The first of the two passes of a functor: the direction takes the weight's place.
template <class Functor>
struct DirectionOf : Functor {
  template <class T>
  DIST_HD DIST_ALWAYS_INLINE T operator()(T, T gradient, T* slot) const {
    return Functor::direction(gradient, slot);
  }
};
template <class Functor, class T>
[[nodiscard]] SlotUpdate<DirectionOf<Functor>, T> direction_of(const SlotUpdate<Functor, T>& update) {
  SlotUpdate<DirectionOf<Functor>, T> directed{{update.functor}, {}};
  for (std::size_t k = 0; k < update.slot_count; ++k) directed.slots[k] = update.slots[k];
  return directed;
}

/// By what directions are multiplied: the norm of the weights, which decay before, over theirs, or 1 where one is 0 or is no
/// number. Both are given as sums of squares.
[[nodiscard]] DIST_HD inline double trust_ratio(double weights, double directions, double decay) {
  const double weight = square_root(weights) * (1 - decay);
  const double direction = square_root(directions);
  return weight > 0 && direction > 0 ? weight / direction : 1;
}

/// In double and in several sums at once, so that the additions need not wait for each other.
template <class T>
[[nodiscard]] double sum_of_squares(std::span<const T> values) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  for (; i < values.size(); ++i) sums[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  double total = 0;
  for (const double one : sums) total += one;
  return total;
}

}  // namespace dist::detail
