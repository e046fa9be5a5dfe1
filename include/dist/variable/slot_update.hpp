/// Two-pass updates, for optimizers that scale the step of a parameter by norms: the first pass computes directions
/// from all gradients, the second applies them, scaled by the trust ratio.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <dist/comm/element_update.hpp>
#include <dist/core/config.hpp>
#include <dist/core/square_root.hpp>

namespace dist {

/// An ElementUpdate of an optimizer's functor and its slots, each as long as the weights. Passes slots to the functor
/// in registers.
template <class Functor, class T>
struct SlotUpdate {
  /// The number of slots of the optimizer.
  static constexpr std::size_t slot_count = Functor::slots.size();

  /// The optimizer's update of one element, with its hyperparameters of this step.
  Functor functor;
  T* slots[slot_count + 1];  ///< the last is unused, because arrays cannot be empty

  DIST_HD DIST_ALWAYS_INLINE T operator()(std::size_t i, T weight, T gradient) const {
    return updated(i, weight, gradient, std::make_index_sequence<slot_count>{});
  }
  [[nodiscard]] DIST_HD DIST_ALWAYS_INLINE Pack<T> pack(std::size_t i, Pack<T> weights, Pack<T> gradients) const {
    return pack(i, weights, gradients, [this](std::size_t) -> const Functor& { return functor; });
  }
  /// Updates a pack with the functor that `functor_at(i)` returns for each element.
  template <class FunctorAt>
  [[nodiscard]] DIST_HD DIST_ALWAYS_INLINE Pack<T> pack(std::size_t i, Pack<T> weights, Pack<T> gradients,
                                                        const FunctorAt& functor_at) const {
    return updated(i, weights, gradients, functor_at, std::make_index_sequence<slot_count>{});
  }

 private:
  template <std::size_t... K>
  DIST_HD DIST_ALWAYS_INLINE T updated([[maybe_unused]] std::size_t i, T weight, T gradient,
                                       std::index_sequence<K...>) const {
    T registers[slot_count + 1] = {slots[K][i]..., T{}};
    weight = functor(weight, gradient, registers);
    ((slots[K][i] = registers[K]), ...);
    return weight;
  }
  template <class FunctorAt, std::size_t... K>
  DIST_HD DIST_ALWAYS_INLINE Pack<T> updated(std::size_t i, Pack<T> weights, Pack<T> gradients,
                                             const FunctorAt& functor_at, std::index_sequence<K...>) const {
    Pack<T> packs[slot_count + 1] = {Pack<T>::load(slots[K] + i)..., Pack<T>{}};
    for (std::size_t lane = 0; lane < pack_elements<T>; ++lane) {
      T registers[slot_count + 1] = {packs[K].element[lane]..., T{}};
      weights.element[lane] = functor_at(i + lane)(weights.element[lane], gradients.element[lane], registers);
      ((packs[K].element[lane] = registers[K]), ...);
    }
    (packs[K].store(slots[K] + i), ...);
    return weights;
  }
};

}  // namespace dist

namespace dist::detail {

/// The first pass of a functor: replaces the weight by the direction.
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

/// Returns the scale of directions: the norm of the weights after decay over the norm of the directions, or 1 if one of
/// them is 0 or NaN. Both are given as sums of squares.
[[nodiscard]] DIST_HD inline double trust_ratio(double weights, double directions, double decay) {
  const double weight = square_root(weights) * (1 - decay);
  const double direction = square_root(directions);
  return weight > 0 && direction > 0 ? weight / direction : 1;
}

/// Computes in double, with several partial sums to shorten dependency chains.
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
