#pragma once

#include <cstddef>
#include <utility>

#include <dist/comm/element_update.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// An optimizer's functor and where its slots lie, each as long as the weights: an ElementUpdate. A slot is loaded into
/// and stored from a register, so the functor itself touches no memory.
template <class Functor, class T>
struct SlotUpdate {
  static constexpr std::size_t slot_count = Functor::slots.size();

  Functor functor;
  T* slots[slot_count + 1];  ///< the last one is not used, as no array is empty

  DIST_HD DIST_ALWAYS_INLINE T operator()(std::size_t i, T weight, T gradient) const {
    return updated(i, weight, gradient, std::make_index_sequence<slot_count>{});
  }
  [[nodiscard]] DIST_HD DIST_ALWAYS_INLINE Pack<T> pack(std::size_t i, Pack<T> weights, Pack<T> gradients) const {
    return pack(i, weights, gradients, [this](std::size_t) -> const Functor& { return functor; });
  }
  /// The same by the functor that `functor_at(i)` gives for each element.
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
