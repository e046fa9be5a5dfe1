// The path of one weight under an optimizer's functor, and the gradients of the reference runs. Keras' values in the
// tests are from
//
//   v = keras.Variable(np.array([1, -2, .5, 0], np.float32)); opt.build([v])
//   for t in range(20):
//     opt.apply([np.array([0.1 * (t + 1), -1.0 / (t + 1), (-1)**t * 0.25, 0], np.float32)], [v])
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// The gradients of the Keras runs, for weights that start at 1, -2, 0.5 and 0.
inline constexpr std::array<float, 4> start_weights{1.0f, -2.0f, 0.5f, 0.0f};
inline constexpr std::size_t reference_steps = 20;
template <class T>
T gradient_of(std::size_t weight, std::size_t step) {
  const auto t = static_cast<T>(step);
  if (weight == 0) return T(0.1) * (t + 1);
  if (weight == 1) return T(-1) / (t + 1);
  if (weight == 2) return step % 2 == 0 ? T(0.25) : T(-0.25);
  return T(0);
}

/// Returns weight `weight` after `reference_steps` steps in arithmetic of T.
template <class T, class Optimizer>
T run_functor(const Optimizer& optimizer, std::size_t weight) {
  T value = static_cast<T>(start_weights[weight]);
  T slots[4] = {};
  for (std::size_t step = 0; step < reference_steps; ++step)
    optimizer.template with_update<T>(static_cast<std::int64_t>(step) + 1,
                                      [&](auto update) { value = update(value, gradient_of<T>(weight, step), slots); });
  return value;
}
