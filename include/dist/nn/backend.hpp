/// A back end computes what layers ask for. It is an empty struct with a name and nested templates; networks
/// name it as a type, `Network<Net, OneDnn>`, so its loops and calls are resolved at compile time.
///
/// `Backend::State` is what one replica's operations share: made in the replica's thread on its first step, from the
/// replica's queue or by default, then used by that thread only. `state.enter()` returns a guard that brackets the calls of
/// one `forward` or `backward`. `Backend::Device` is where tensors live, `Backend::supports<T>` which element
/// types it computes. On a device whose memory the host does not touch, operations put their work into the replica's
/// queue and return, and `Backend::Memory<T>{queue, count}` is memory for so many elements, with a `data()`.
///
/// Operations are objects, one per layer and replica, and may keep state such as compiled kernels. `Geometry`
/// is a struct of static constants (geometry.hpp). Tensors are views with the batch's rows outermost, at
/// least one row; x, y and their gradients dx, dy never overlap unless said. Kernels and biases are as Keras
/// has them: [in, out] for Dense, [height, width, in / groups, out] for Conv2D, images [height, width, channels].
///
/// Dense<Geometry, T> and Conv2D<Geometry, T>:
/// - `forward(state, x, kernel, bias, y)`, with the geometry's activation, which HasGradientOfOutput;
/// - `parameter_gradients(state, x, dy, kernel_gradient, bias_gradient)` overwrites both;
/// - `input_gradient(state, dy, kernel, dx)` overwrites dx.
///
/// MaxPool2D<Geometry, T>, AveragePool2D<Geometry, T>, GlobalMaxPool2D<Image, T> and GlobalAveragePool2D<Image, T>, where
/// elements of the padding count for nothing:
/// - `forward(state, x, y)`;
/// - `input_gradient(state, x, dy, dx)`, after a `forward` with this x, overwrites dx.
///
/// Elementwise<Function, T>, for any Activation:
/// - `forward(state, x, y)`; y may be x;
/// - `input_gradient(state, value, dy, dx)` overwrites dx, which may be dy; `value` is y where the function
///   HasGradientOfOutput, else x.
///
/// Attention<Geometry, T>, of queries, keys and values [rows * length, heads * width] and weights [rows, heads, length,
/// length]:
/// - `forward(state, queries, keys, values, weights, outputs)` writes the weights and the outputs;
/// - `input_gradients(state, queries, keys, values, weights, output_gradients, query_gradients, key_gradients,
///   value_gradients)` overwrites the last three.
///
/// Embedding<Words, Width, T>, of ids that are numbers of type T:
/// - `forward(state, ids, table, y)`;
/// - `table_gradient(state, ids, dy, gradient)` overwrites the gradient.
///
/// Dropout<Numerator, Denominator, T>:
/// - `forward(state, random, first, x, y)`: element i is dropped by number `first` + i of the stream that LayerRandom::next
///   returns for `random`, its state, Numerator of Denominator of all, and the others are divided by the share that is kept;
/// - `forward(state, x, y)` drops none;
/// - `input_gradient(state, dy, dx)` overwrites dx, as the last forward dropped.
///
/// Softmax<Classes, T>, along the last axis, where a back end is faster than the formula in nn/softmax.hpp:
/// - `forward(state, x, y)`;
/// - `input_gradient(state, y, dy, dx)` overwrites dx.
///
/// Layers whose formula of a row is written once need no operation, but on a device whose memory the host does not touch the two
/// static functions `for_each_row(state, rows, size, body)` and `sum_columns(state, rows, columns, terms, to)` of
/// nn/row.hpp.
///
/// The dy of Dense and Conv2D is the gradient before the activation: the layer applies Elementwise to it
/// first. Where several elements of a pooling window hold the maximum, the gradient goes to the first of them
/// in row-major order. The maximum of a window with a NaN is NaN, and its gradient goes to the first NaN.
///
/// A back end on the host may derive from nn::Reference and name only the operations that are its own.
///
/// Errors of the engine underneath leave as dist::Error naming the operation and its geometry.
#pragma once

#include <concepts>
#include <string_view>

#include <dist/core/tensor.hpp>

namespace dist::nn {

/// A back end's state that may be told that the factors of all products have at most 11 significant bits, as those of
/// BFloat16 and Float16 have: units for such numbers give the same products, and faster.
template <class S>
concept TakesShortFactors = requires(S& state) {
  state.set_short_factors();
};

/// A back end that rounds what it multiplies, to numbers of type B::Factor: such products are its own, and nobody else's are to
/// take their place.
template <class B>
concept RoundsFactors = requires {
  typename B::Factor;
};

/// A back end whose networks are traced in steps that are compiled: it has the functions `forward(trace, network, x, mode)`,
/// `backward(trace, network, loss)`, `parameters(trace, network)`, `gradients(trace, network)` and
/// `add_gradient(trace, network, parameter, more)`.
template <class B>
concept TracesNetworks = B::traces_networks;

namespace detail {
/// From nothing, or from a queue, which only some devices have: clang++ 14 refuses a requires-expression that asks for either.
template <class B>
concept MakesState = std::default_initializable<typename B::State> ||
    std::constructible_from<typename B::State, const typename B::Device::Queue&>;
}  // namespace detail

template <class B>
concept Backend = detail::MakesState<B> && requires(typename B::State& state) {
  typename B::Device;
  { B::name } -> std::convertible_to<std::string_view>;
  { B::template supports<float> } -> std::convertible_to<bool>;
  state.enter();
};

/// A view of elements where a back end's tensors lie.
template <class B, class T>
using ViewOn = TensorView<T, typename B::Device::Space>;

namespace detail {

/// A back end that has what a layer asks for: `Asked::From<B>` is its operation.
template <class B, class Asked>
concept Computes = requires {
  typename Asked::template From<B>;
};

/// Stands for the operation that a back end does not have, and refuses it in a sentence that is the only error.
template <class B, class Asked>
struct LacksOperation {
  static_assert(
      Computes<B, Asked>,
      "the back end of this network does not compute the layer that is named here: use another back end, such "
      "as nn::Reference or nn::OneDnn, derive yours from one of these, or use another layer");
  void forward(const auto&...) {}
  void input_gradient(const auto&...) {}
  void table_gradient(const auto&...) {}
  void input_gradients(const auto&...) {}
};

template <class B, class Asked>
struct KernelOf {
  using Type = LacksOperation<B, Asked>;
};
template <class B, class Asked>
  requires Computes<B, Asked>
struct KernelOf<B, Asked> {
  using Type = typename Asked::template From<B>;
};
template <class B, class Asked>
using KernelFrom = typename KernelOf<B, Asked>::Type;

}  // namespace detail

}  // namespace dist::nn
