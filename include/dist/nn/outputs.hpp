#pragma once

#include <concepts>

#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn {

/// A network's output for a batch, and the destination of the loss's gradient, d loss / d values, to write before
/// `backward`. Both have shape [rows, …] and belong to the network: the replica's next `forward` overwrites them.
template <class T, dist::MemorySpace Where = HostMemory>
struct Outputs {
  TensorView<const T, Where> values;  ///< one row per example, for the loss
  TensorView<T, Where> gradient;      ///< of the same shape, to be written
};

/// The mode of training: layers use the batch's statistics, and update stored ones. Most layers compute the same in
/// both modes.
struct Training {};
/// The mode of evaluation and prediction: layers use stored statistics, and change nothing.
struct Inference {};

/// The argument of `forward` for training, the default.
inline constexpr Training training{};
/// The argument of `forward` for inference.
inline constexpr Inference inference{};

/// The values by which a backward pass differentiates: the network's parameters, its input, or both.
template <bool Parameters, bool Input>
struct GradientSources {
  static constexpr bool parameters = Parameters;  ///< true for the gradients of the parameters
  static constexpr bool input = Input;            ///< true for the gradient of the input
};

/// The argument of `backward` for the gradients of the parameters and of the input.
inline constexpr GradientSources<true, true> input_gradient{};
/// The argument of `backward` for the input's gradient alone. Gradients of parameters remain as they are.
inline constexpr GradientSources<false, true> only_input_gradient{};

template <class M>
concept ForwardMode = std::same_as<M, Training> || std::same_as<M, Inference>;

}  // namespace dist::nn
