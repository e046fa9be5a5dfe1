/// A back end: the implementation of layers. An empty struct with a name and nested templates. Networks take it as a
/// type, `Network<Net, OneDnn>`, so all calls are resolved at compile time.
///
/// All operations of a replica share a `Backend::State`. The replica's thread creates it in its first step, from the
/// replica's queue or by default, and is its only user. `state.enter()` returns a guard for one `forward` or
/// `backward`. `Backend::Device` is the tensors' device, and `Backend::supports<T>` is true for supported element
/// types. On a device whose memory the host cannot access, operations enqueue their work in the replica's queue, and
/// `Backend::Memory<T>{queue, count}` allocates `count` elements, with a `data()`.
///
/// Operations are objects, one per layer and replica, and may keep state such as compiled kernels. `Geometry` is a
/// struct of static constants (geometry.hpp). The outermost axis of tensors is the batch, with at least one row. x, y
/// and their gradients dx, dy never overlap unless noted. Shapes are Keras': kernels [in, out] for Dense and [height,
/// width, in / groups, out] for Conv2D, images [height, width, channels].
///
/// Dense<Geometry, T> and Conv2D<Geometry, T>:
/// - `forward(state, x, kernel, bias, y)`, including the geometry's activation, which HasGradientOfOutput;
/// - `parameter_gradients(state, x, dy, kernel_gradient, bias_gradient)` overwrites both;
/// - `input_gradient(state, dy, kernel, dx)` overwrites dx.
/// If `Geometry::has_bias` is false, the bias and its gradient are empty views.
///
/// MaxPool2D<Geometry, T>, AveragePool2D<Geometry, T>, GlobalMaxPool2D<Image, T> and GlobalAveragePool2D<Image, T>,
/// which ignore padding, unless AveragePool2D's `Geometry::counts_padding`:
/// - `forward(state, x, y)`;
/// - `input_gradient(state, x, dy, dx)`, after a `forward` with this x, overwrites dx.
///
/// Elementwise<Function, T>, for any Activation:
/// - `forward(state, x, y)`; y may be x;
/// - `input_gradient(state, value, dy, dx)` overwrites dx, which may be dy; `value` is y if the function
///   HasGradientOfOutput, else x.
///
/// Attention<Geometry, T>, of `Geometry::sizes`, for queries [rows * length, heads * width], and keys and values
/// [rows * length, key_heads * width]:
/// - `forward(state, queries, keys, values, outputs)`;
/// - `input_gradients(state, queries, keys, values, outputs, output_gradients, query_gradients, key_gradients,
///   value_gradients)`, after a `forward` with these inputs, overwrites the last three.
///
/// Embedding<Words, Width, T>, for ids stored as numbers of type T:
/// - `forward(state, ids, table, y)`;
/// - `add_table_gradient(state, ids, dy, gradient)` adds to the gradient.
///
/// Dropout<Numerator, Denominator, T>:
/// - `forward(state, random, first, x, y)`: drops element i by number `first` + i of the stream
///   `LayerRandom::next(random)`, with rate Numerator / Denominator, and divides the others by 1 - rate;
/// - `forward(state, x, y)` drops no element;
/// - `input_gradient(state, dy, dx)` overwrites dx, with the mask of the last forward.
///
/// Softmax<Classes, T>, along the last axis, optional, if faster than the formula in nn/softmax.hpp:
/// - `forward(state, x, y)`;
/// - `input_gradient(state, y, dy, dx)` overwrites dx.
///
/// Layers that compute row by row need no operation. On a device whose memory the host cannot access, they use the
/// static functions `for_each_row(state, rows, size, body)` and `sum_columns(state, rows, columns, terms, to)`
/// (nn/row.hpp).
///
/// The dy of Dense and Conv2D is the gradient before the activation: the layer applies Elementwise first. The first
/// maximum of a pooling window, in row-major order, gets the gradient. The maximum of a window with a NaN is NaN, and
/// the first NaN gets the gradient.
///
/// A back end on the host may derive from nn::Reference and override some operations.
///
/// Errors of the underlying library are rethrown as dist::Error, with the operation and its geometry.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn {

/// A back end's state that can use faster units if factors have at most 11 significant bits, as BFloat16 and Float16
/// do: the products are the same.
template <class S>
concept TakesShortFactors = requires(S& state) {
  state.set_short_factors();
};

/// A back end with units for products of factors of type `Half`, BFloat16 or Float16. `B::Short<Half>` has the operations
/// Dense and Conv2D, whose views of x, kernel and dy have elements of type Half, and `is_available()`, which is true if
/// this processor has the units and they are faster.
template <class B, class Half>
concept MultipliesShort = requires {
  { B::template Short<Half>::is_available() } -> std::same_as<bool>;
};

/// A back end that rounds factors to type B::Factor. No other kernel may replace its products.
template <class B>
concept RoundsFactors = requires {
  typename B::Factor;
};

/// A back end whose networks are traced in compiled steps. It has the functions `forward(trace, network, x, mode)`,
/// `backward(trace, network, loss, sources)`, `parameters(trace, network)`, `gradients(trace, network)` and
/// `add_gradient(trace, network, parameter, more)`.
template <class B>
concept TracesNetworks = B::traces_networks;

namespace detail {
/// A state that can be created by default, or from a queue if the device has them. (clang++ 14 rejects one
/// requires-expression for both.)
template <class B>
concept MakesState = std::default_initializable<typename B::State> ||
    std::constructible_from<typename B::State, const typename B::Device::Queue&>;
}  // namespace detail

/// A back end; see the top of this file.
template <class B>
concept Backend = detail::MakesState<B> && requires(typename B::State& state) {
  typename B::Device;
  { B::name } -> std::convertible_to<std::string_view>;
  { B::template supports<float> } -> std::convertible_to<bool>;
  state.enter();
};

/// A view of elements in a back end's memory.
template <class B, class T>
using ViewOn = TensorView<T, typename B::Device::Space>;

namespace detail {

/// A back end with the operation `Asked::From<B>`.
template <class B, class Asked>
concept Computes = requires {
  typename Asked::template From<B>;
};

/// Replaces a missing operation, and reports it as the only error.
template <class B, class Asked>
struct LacksOperation {
  static_assert(Computes<B, Asked>,
                "the back end of this network does not support the layer named here: use another back end, such as "
                "nn::Reference or nn::OneDnn, derive yours from one of these, or use another layer");
  void forward(const auto&...) {}
  void input_gradient(const auto&...) {}
  void add_table_gradient(const auto&...) {}
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

namespace dist::nn::detail {

template <class Backend, class T>
struct LayerMemoryOf {
  using Type = typename Backend::template Memory<T>;
};
template <class Backend, class T>
  requires(Backend::Device::Space::host_accessible)
struct LayerMemoryOf<Backend, T> {
  using Type = AlignedBuffer<T>;
};

/// Elements in a back end's memory: outputs and state of layers. Null until allocated.
template <class Backend, class T>
using LayerMemory = typename LayerMemoryOf<Backend, T>::Type;

/// Returns the queue of a back end's state; on the host a default queue.
template <class Backend>
[[nodiscard]] typename Backend::Device::Queue queue_of([[maybe_unused]] const typename Backend::State& state) {
  if constexpr (Backend::Device::Space::host_accessible) {
    return {};
  } else {
    return state.queue();
  }
}

/// Allocates memory for one queue.
template <class Backend, class T>
[[nodiscard]] LayerMemory<Backend, T> make_layer_memory([[maybe_unused]] const typename Backend::Device::Queue& queue,
                                                        std::size_t count) {
  if constexpr (Backend::Device::Space::host_accessible) {
    return AlignedBuffer<T>(count);
  } else {
    return typename Backend::template Memory<T>{queue, count};
  }
}

}  // namespace dist::nn::detail
