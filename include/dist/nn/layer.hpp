/// What the parts of a network promise each other.
///
/// A layer is an empty struct named after what it does, `Dense<128, Relu>`. It knows its own numbers, but not
/// its input: `Layer::On<Input>`, with the StaticShape of one input row, is the layer in its place, and says
/// everything about it at compile time:
///
/// - `Output`: the StaticShape of one output row. A wrong `Input` fails here, in one static_assert.
/// - `name`: Keras' name of the layer, "dense".
/// - `parameters`: a std::array of ParameterSpec, empty for layers that learn nothing.
/// - `initialize<Which>(view, stream)`, for layers with parameters: first values of parameter `Which`.
/// - `is_view`: true when output and input are the same elements in the same order; nothing is computed then,
///   and the layer needs no Operation.
/// - `Operation<Backend, T>`: the computation, one object per replica, which may keep state from `forward` to
///   `backward`:
///   - `forward(state, x, parameters, y)` writes all of `y`;
///   - `backward<input_gradient>(state, x, parameters, y, dy, gradients, dx)` overwrites all of `gradients`
///     and, where `input_gradient` is true, all of `dx`. It may change `dy`, which nobody reads afterwards.
///
/// All tensors have the rows of the batch as outermost axis, at least one. `state` is the back end's
/// (backend.hpp).
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn {

/// One tensor that a layer learns.
struct ParameterSpec {
  std::string_view name;  ///< "kernel" or "bias"
  Shape shape;
};

/// The parameters of one layer, and their gradients, as its Operation gets them.
template <class T, std::size_t Count>
using ParameterViews = std::array<TensorView<T>, Count>;

/// A layer in its place.
template <class L>
concept PlacedLayer = requires {
  typename L::Output;
  { L::name } -> std::convertible_to<std::string_view>;
  { L::parameters.size() } -> std::convertible_to<std::size_t>;
  { L::is_view } -> std::convertible_to<bool>;
};

namespace detail {

/// The parameters of a layer that learns nothing.
inline constexpr std::array<ParameterSpec, 0> no_parameters{};

/// False, but only once a template with this argument is used.
template <class>
inline constexpr bool never = false;

}  // namespace detail

}  // namespace dist::nn
