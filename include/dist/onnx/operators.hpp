/// ONNX operators for the layers of nn/layers/.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/transpose.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/bias.hpp>
#include <dist/nn/layers/concatenate.hpp>
#include <dist/nn/layers/conv1d.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/conv2d_transpose.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/depthwise_conv2d.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/learned_positions.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/multiply.hpp>
#include <dist/nn/layers/pool1d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/recomputed.hpp>
#include <dist/nn/layers/repeat.hpp>
#include <dist/nn/layers/rms_normalization.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/unembed.hpp>
#include <dist/nn/layers/up_sampling2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/onnx/graph.hpp>

namespace dist::onnx {

/// An activation in ONNX operators. Specialise it for others, as below: `add<T>(graph, x)` adds nodes that apply it to
/// tensor `x`, and returns the last output's name.
template <class Function>
struct ActivationOperator;

/// A layer in ONNX operators. Specialise it for others, by the placed layer's `Layer`, as below:
/// `add<Bound>(graph, x, weights)` adds nodes for the layer's inference, takes its tensors from `weights`, and returns
/// the output.
template <class Layer>
struct Operator;

namespace detail {

template <class Function, class T>
concept HasActivationOperator = requires(Graph& graph, const std::string& x) {
  ActivationOperator<Function>::template add<T>(graph, x);
};
template <class Bound, class Weights>
concept HasOperator = requires(Graph& graph, const Value& x, Weights& weights) {
  Operator<typename Bound::Layer>::template add<Bound>(graph, x, weights);
};

/// Adds the activation of a layer.
template <class Function, class T>
[[nodiscard]] Value activated(Graph& graph, Value x) {
  if constexpr (HasActivationOperator<Function, T>) {
    x.name = ActivationOperator<Function>::template add<T>(graph, x.name);
    return x;
  } else {
    throw InvalidArgument(concat("The activation ", dist::detail::type_name<Function>(), " cannot be exported to ONNX"),
                          "its operators are not defined", "Specialise dist::onnx::ActivationOperator for it");
  }
}

template <class Bound, class Weights>
[[nodiscard]] Value add_layer(Graph& graph, const Value& x, Weights& weights) {
  if constexpr (HasOperator<Bound, Weights>) {
    graph.enter(Bound::name);
    Value y = Operator<typename Bound::Layer>::template add<Bound>(graph, x, weights);
    y.row = Bound::Output::shape();
    graph.leave();
    return y;
  } else {
    throw InvalidArgument(concat("The layer '", Bound::name, "' cannot be exported to ONNX"),
                          concat("its operators are not defined; its type is ", dist::detail::type_name<Bound>()),
                          "Specialise dist::onnx::Operator for it, or export a network without it");
  }
}

/// Adds the layers of a Sequential.
template <class Net, class Weights>
[[nodiscard]] Value add_layers(Graph& graph, Value x, Weights& weights) {
  [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    ((x = add_layer<typename Net::template Layer<Index>>(graph, x, weights)), ...);
  }
  (std::make_index_sequence<Net::layer_count>{});
  return x;
}

/// Adds the branches of a layer. Returns their outputs, with channels at the same axis.
template <class Bound, class Weights>
[[nodiscard]] std::vector<Value> add_branches(Graph& graph, const Value& x, Weights& weights) {
  std::vector<Value> outputs;
  [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    (outputs.push_back(add_layers<typename Bound::template Net<Index>>(graph, x, weights)), ...);
  }
  (std::make_index_sequence<Bound::count>{});
  for (Value& output : outputs) output = graph.with_channels_as(outputs.front(), output);
  return outputs;
}
[[nodiscard]] std::vector<std::string> names_of(const std::vector<Value>& values);

template <class T>
[[nodiscard]] std::string add_parameter(Graph& graph, const NamedTensor<T>& tensor) {
  return graph.parameter(tensor.name, tensor.values);
}
/// Adds a parameter with another shape.
template <class T>
[[nodiscard]] std::string add_parameter(Graph& graph, const NamedTensor<T>& tensor, const Shape& shape) {
  return graph.parameter(tensor.name, TensorView<const T>{tensor.values.data(), shape});
}

template <std::size_t... Number>
[[nodiscard]] std::vector<std::int64_t> numbers() {
  return {static_cast<std::int64_t>(Number)...};
}
/// Returns the attributes of a window geometry.
template <class Geometry>
[[nodiscard]] std::vector<Attribute> attributes_of_windows() {
  if constexpr (Geometry::is_sequence)
    return {{"kernel_shape", numbers<Geometry::window>()},
            {"strides", numbers<Geometry::stride>()},
            {"pads", numbers<Geometry::pad_left, Geometry::pad_right>()}};
  else
    return {{"kernel_shape", numbers<Geometry::window, Geometry::window>()},
            {"strides", numbers<Geometry::stride, Geometry::stride>()},
            {"pads", numbers<Geometry::pad_top, Geometry::pad_left, Geometry::pad_bottom, Geometry::pad_right>()}};
}

/// Adds an operator on images, with channels first.
[[nodiscard]] Value add_on_images(Graph& graph, const Value& x, std::string_view op,
                                  const std::vector<Attribute>& attributes);
/// Adds a pooling with one result per channel.
[[nodiscard]] Value add_global_pool(Graph& graph, const Value& x, std::string_view op);

/// Adds a convolution, whose kernel is [window, window, channels of a group, filters], or [window, channels, filters]
/// for sequences, and which has the windows of `Geometry`.
template <class Bound, class Function, class Geometry = typename Bound::Geometry, class Weights>
[[nodiscard]] Value add_convolution(Graph& graph, const Value& x, Weights& weights, std::string_view op = "Conv",
                                    const std::vector<Attribute>& more = {}) {
  using T = typename Weights::Element;
  constexpr std::array<std::size_t, 3> filters_first{2, 1, 0};
  const auto kernel = weights.parameters.next();
  const Tensor<T> filters =
      transpose(TensorView<const T>{kernel.values.data(), Shape{Geometry::window_height * Geometry::window,
                                                                Geometry::group_channels, Geometry::filters}},
                std::span<const std::size_t>{filters_first});
  const Shape shape = Geometry::is_sequence
                          ? filters.shape()
                          : Shape{Geometry::filters, Geometry::group_channels, Geometry::window, Geometry::window};
  Value y = graph.channels_first(x);
  auto attributes = attributes_of_windows<Geometry>();
  attributes.push_back({"group", static_cast<std::int64_t>(Geometry::groups)});
  attributes.insert(attributes.end(), more.begin(), more.end());
  std::vector<std::string> inputs{y.name, graph.parameter(kernel.name, TensorView<const T>{filters.data(), shape})};
  if constexpr (Bound::Geometry::has_bias) inputs.push_back(add_parameter(graph, weights.parameters.next()));
  y.name = graph.node(op, inputs, attributes);
  return activated<Function, T>(graph, y);
}

/// Adds x · kernel, over the last axis, and the bias if there is one. They are the next parameters.
template <bool HasBias, class Weights>
[[nodiscard]] std::string add_product(Graph& graph, const std::string& x, Weights& weights, std::size_t inputs,
                                      std::size_t units) {
  const std::string product =
      graph.node("MatMul", {x, add_parameter(graph, weights.parameters.next(), Shape{inputs, units})});
  if constexpr (HasBias)
    return graph.node("Add", {product, add_parameter(graph, weights.parameters.next(), Shape{units})});
  else
    return product;
}

}  // namespace detail

/// The identity: adds no node.
template <>
struct ActivationOperator<nn::Linear> {
  template <class T>
  static std::string add(Graph&, const std::string& x) {
    return x;
  }
};
/// Relu.
template <>
struct ActivationOperator<nn::Relu> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    return graph.node("Relu", {x});
  }
};
/// LeakyRelu.
template <std::size_t Numerator, std::size_t Denominator>
struct ActivationOperator<nn::LeakyRelu<Numerator, Denominator>> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    return graph.node("LeakyRelu", {x}, {{"alpha", static_cast<double>(Numerator) / static_cast<double>(Denominator)}});
  }
};
/// Elu.
template <std::size_t Numerator, std::size_t Denominator>
struct ActivationOperator<nn::Elu<Numerator, Denominator>> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    return graph.node("Elu", {x}, {{"alpha", static_cast<double>(Numerator) / static_cast<double>(Denominator)}});
  }
};
/// Softplus.
template <>
struct ActivationOperator<nn::Softplus> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    return graph.node("Softplus", {x});
  }
};
/// HardSwish.
template <>
struct ActivationOperator<nn::HardSilu> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    return graph.node("HardSwish", {x});
  }
};
/// Tanh.
template <>
struct ActivationOperator<nn::Tanh> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    return graph.node("Tanh", {x});
  }
};
/// Sigmoid.
template <>
struct ActivationOperator<nn::Sigmoid> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    return graph.node("Sigmoid", {x});
  }
};
/// Mul of x and its Sigmoid.
template <>
struct ActivationOperator<nn::Silu> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    return graph.node("Mul", {x, graph.node("Sigmoid", {x})});
  }
};
/// Gelu in elementary operators: ONNX' Gelu requires opset 20, which fewer programs support.
template <>
struct ActivationOperator<nn::Gelu> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    const std::string half = graph.number("half", T(0.5));
    const std::string scaled = graph.node("Mul", {x, graph.number("inverse_root_of_2", T(0.70710678118654752440))});
    const std::string halved = graph.node("Mul", {graph.node("Erf", {scaled}), half});
    return graph.node("Mul", {x, graph.node("Add", {halved, half})});
  }
};

/// GeluTanh in elementary operators.
template <>
struct ActivationOperator<nn::GeluTanh> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    const std::string half = graph.number("half", T(0.5));
    const std::string scale = graph.number("root_of_2_over_pi", T(0.79788456080286535588));
    const std::string cubic = graph.number("cubic", T(0.79788456080286535588 * 0.044715));
    const std::string square = graph.node("Mul", {x, x});
    const std::string factor = graph.node("Add", {graph.node("Mul", {square, cubic}), scale});
    const std::string halved = graph.node("Mul", {graph.node("Tanh", {graph.node("Mul", {x, factor})}), half});
    return graph.node("Mul", {x, graph.node("Add", {halved, half})});
  }
};

/// MatMul, and Add unless it has no bias.
template <std::size_t Units, class Function, class KernelInitializer, class BiasInitializer>
struct Operator<nn::Dense<Units, Function, KernelInitializer, BiasInitializer>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    using T = typename Weights::Element;
    Value y = graph.channels_last(x);
    y.name = detail::add_product<Bound::Geometry::has_bias>(graph, y.name, weights, Bound::Geometry::inputs, Units);
    return detail::activated<Function, T>(graph, y);
  }
};

/// Conv.
template <std::size_t Filters, std::size_t Window, class Function, std::size_t Stride, class Padding,
          class KernelInitializer, class BiasInitializer, std::size_t Groups>
struct Operator<nn::Conv2D<Filters, Window, Function, Stride, Padding, KernelInitializer, BiasInitializer, Groups>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    return detail::add_convolution<Bound, Function>(graph, x, weights);
  }
};
/// ConvTranspose. ONNX' output ends at the last window; padding extends it if windows are smaller than the stride.
template <std::size_t Filters, std::size_t Window, class Function, std::size_t Stride, class Padding,
          class KernelInitializer, class BiasInitializer>
struct Operator<nn::Conv2DTranspose<Filters, Window, Function, Stride, Padding, KernelInitializer, BiasInitializer>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    constexpr std::size_t padding = Stride > Window ? Stride - Window : 0;
    return detail::add_convolution<Bound, Function, typename Bound::Geometry::Swapped>(
        graph, x, weights, "ConvTranspose", {{"output_padding", detail::numbers<padding, padding>()}});
  }
};
/// Conv along one axis.
template <std::size_t Filters, std::size_t Window, class Function, std::size_t Stride, class Padding,
          class KernelInitializer, class BiasInitializer>
struct Operator<nn::Conv1D<Filters, Window, Function, Stride, Padding, KernelInitializer, BiasInitializer>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    return detail::add_convolution<Bound, Function>(graph, x, weights);
  }
};
/// Conv with groups: [window, window, channels, multiplier] has the elements of [window, window, 1, filters].
template <std::size_t Window, class Function, std::size_t Stride, class Padding, std::size_t Multiplier,
          class KernelInitializer, class BiasInitializer>
struct Operator<
    nn::DepthwiseConv2D<Window, Function, Stride, Padding, Multiplier, KernelInitializer, BiasInitializer>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    return detail::add_convolution<Bound, Function>(graph, x, weights);
  }
};

/// MaxPool.
template <std::size_t Window, std::size_t Stride, class Padding>
struct Operator<nn::MaxPool2D<Window, Stride, Padding>> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto&) {
    return detail::add_on_images(graph, x, "MaxPool", detail::attributes_of_windows<typename Bound::Geometry>());
  }
};
template <std::size_t Window, std::size_t Stride, class Padding>
struct Operator<nn::MaxPool1D<Window, Stride, Padding>> : Operator<nn::MaxPool2D<Window, Stride, Padding>> {};
/// AveragePool.
template <std::size_t Window, std::size_t Stride, class Padding, class Counting>
struct Operator<nn::AveragePool2D<Window, Stride, Padding, Counting>> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto&) {
    auto attributes = detail::attributes_of_windows<typename Bound::Geometry>();
    if constexpr (Bound::Geometry::counts_padding) attributes.push_back({"count_include_pad", std::int64_t{1}});
    return detail::add_on_images(graph, x, "AveragePool", attributes);
  }
};
template <std::size_t Window, std::size_t Stride, class Padding, class Counting>
struct Operator<nn::AveragePool1D<Window, Stride, Padding, Counting>>
    : Operator<nn::AveragePool2D<Window, Stride, Padding, Counting>> {};
/// Resize; by default to the nearest pixel.
template <std::size_t Size>
struct Operator<nn::UpSampling2D<Size>> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto&) {
    constexpr std::array<float, 4> scales{1, 1, Size, Size};
    Value y = graph.channels_first(x);
    const std::string factors = graph.constant("scales", TensorView<const float>{scales.data(), Shape{4}});
    y.name = graph.node("Resize", {y.name, "", factors});
    return y;
  }
};
/// GlobalAveragePool.
template <>
struct Operator<nn::GlobalAveragePool2D> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto&) {
    return detail::add_global_pool(graph, x, "GlobalAveragePool");
  }
};
template <>
struct Operator<nn::GlobalAveragePool1D> : Operator<nn::GlobalAveragePool2D> {};
/// GlobalMaxPool.
template <>
struct Operator<nn::GlobalMaxPool2D> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto&) {
    return detail::add_global_pool(graph, x, "GlobalMaxPool");
  }
};
template <>
struct Operator<nn::GlobalMaxPool1D> : Operator<nn::GlobalMaxPool2D> {};

/// The activation.
template <class Function>
struct Operator<nn::Activate<Function>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights&) {
    return detail::activated<Function, typename Weights::Element>(graph, x);
  }
};
/// Softmax over the channels.
template <>
struct Operator<nn::Softmax> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto&) {
    return {graph.node("Softmax", {x.name}, {{"axis", std::int64_t{x.channels_first ? 1 : -1}}}), x.row,
            x.channels_first};
  }
};
/// The identity, because inference drops no element.
template <std::size_t Numerator, std::size_t Denominator>
struct Operator<nn::Dropout<Numerator, Denominator>> {
  template <class Bound>
  static Value add(Graph&, const Value& x, auto& weights) {
    weights.state.next();
    return x;
  }
};

/// Reshape, with channels last.
template <>
struct Operator<nn::Flatten> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto&) {
    const Shape row = Bound::Output::shape();
    return {graph.reshape(graph.channels_last(x).name, row), row};
  }
};
template <std::size_t... Extents>
struct Operator<nn::Reshape<Extents...>> : Operator<nn::Flatten> {};

/// BatchNormalization with the moving statistics.
template <class Statistics, class Options>
struct Operator<nn::BatchNormalization<Statistics, Options>> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto& weights) {
    const std::string gamma = detail::add_parameter(graph, weights.parameters.next());
    const std::string beta = detail::add_parameter(graph, weights.parameters.next());
    const std::string mean = detail::add_parameter(graph, weights.state.next());
    const std::string variance = detail::add_parameter(graph, weights.state.next());
    Value y = graph.channels_first(x);
    y.name = graph.node("BatchNormalization", {y.name, gamma, beta, mean, variance}, {{"epsilon", Options::epsilon}});
    return y;
  }
};
/// LayerNormalization over the channels.
template <class Options>
struct Operator<nn::LayerNormalization<Options>> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto& weights) {
    const std::string gamma = detail::add_parameter(graph, weights.parameters.next());
    const std::string beta = detail::add_parameter(graph, weights.parameters.next());
    Value y = graph.channels_last(x);
    y.name = graph.node("LayerNormalization", {y.name, gamma, beta},
                        {{"axis", std::int64_t{-1}}, {"epsilon", Options::epsilon}});
    return y;
  }
};
/// The root of the mean of squares in elementary operators: ONNX' RMSNormalization requires a later opset.
template <class Options>
struct Operator<nn::RMSNormalization<Options>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    using T = typename Weights::Element;
    Value y = graph.channels_last(x);
    const std::string mean =
        graph.node("ReduceMean", {graph.node("Mul", {y.name, y.name})}, {{"axes", std::vector<std::int64_t>{-1}}});
    const std::string added = graph.node("Add", {mean, graph.number("epsilon", static_cast<T>(Options::epsilon))});
    const std::string normalized = graph.node("Div", {y.name, graph.node("Sqrt", {added})});
    y.name = graph.node("Mul", {normalized, detail::add_parameter(graph, weights.parameters.next())});
    return y;
  }
};
/// InstanceNormalization with groups as channels, of all their channels and pixels. ONNX' GroupNormalization requires a
/// later opset, and has changed since.
template <std::size_t Groups, class Options>
struct Operator<nn::GroupNormalization<Groups, Options>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    using T = typename Weights::Element;
    constexpr std::size_t channels = Bound::Geometry::channels;
    Value y = graph.channels_first(x);
    std::vector<std::size_t> extents{channels};
    for (std::size_t axis = 0; axis + 1 < x.row.rank(); ++axis) extents.push_back(x.row[axis]);
    const Shape in_tensor{std::span<const std::size_t>{extents}};
    for (std::size_t axis = 1; axis < extents.size(); ++axis) extents[axis] = 1;
    const Shape of_channels{std::span<const std::size_t>{extents}};
    std::vector<T> ones(Groups, T{1});
    std::vector<T> zeros(Groups, T{0});
    const std::string one = graph.constant("ones", TensorView<const T>{ones.data(), Shape{Groups}});
    const std::string zero = graph.constant("zeros", TensorView<const T>{zeros.data(), Shape{Groups}});
    const std::string groups = graph.reshape(y.name, Shape{Groups, x.row.elements() / Groups});
    const std::string normal =
        graph.node("InstanceNormalization", {groups, one, zero}, {{"epsilon", Options::epsilon}});
    const std::string gamma = detail::add_parameter(graph, weights.parameters.next(), of_channels);
    const std::string beta = detail::add_parameter(graph, weights.parameters.next(), of_channels);
    const std::string scaled = graph.node("Mul", {graph.reshape(normal, in_tensor), gamma});
    y.name = graph.node("Add", {scaled, beta});
    return y;
  }
};

/// Cast and Gather. Ids are truncated to integers, as in the layer.
template <std::size_t Words, std::size_t Width, class Initializer>
struct Operator<nn::Embedding<Words, Width, Initializer>> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto& weights) {
    const std::string table = detail::add_parameter(graph, weights.parameters.next());
    const std::int64_t integers = data_type(io::ElementType::i64);
    const std::string ids = graph.node("Cast", {graph.channels_last(x).name}, {{"to", integers}});
    return {graph.node("Gather", {table, ids}), Bound::Output::shape()};
  }
};

/// A product with the table of the embedding, which has its name in the graph.
template <class Name>
struct Operator<nn::detail::UnembedOf<Name>> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto&) {
    const std::string table = concat(Bound::TiedTo::name, '/', Bound::TiedTo::parameters[0].name);
    const std::string columns = graph.node("Transpose", {table}, {{"perm", detail::numbers<1, 0>()}});
    return {graph.node("MatMul", {graph.channels_last(x).name, columns}), Bound::Output::shape()};
  }
};

/// The sum of the input and the layer's parameter.
template <class Initializer>
struct Operator<nn::Bias<Initializer>> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto& weights) {
    Value y = graph.channels_last(x);
    y.name = graph.node("Add", {y.name, detail::add_parameter(graph, weights.parameters.next())});
    return y;
  }
};
template <class Initializer>
struct Operator<nn::LearnedPositions<Initializer>> : Operator<nn::Bias<Initializer>> {};

/// Attention in elementary operators, with two axes before the sequence: heads of keys, and the heads of queries that
/// share one.
template <std::size_t Heads, std::size_t Width, class Options, class KernelInitializer, class BiasInitializer>
struct Operator<nn::MultiHeadAttention<Heads, Width, Options, KernelInitializer, BiasInitializer>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    using T = typename Weights::Element;
    const Value in = graph.channels_last(x);
    const auto heads = [&](std::size_t shared, bool rotates, const std::vector<std::int64_t>& order) {
      const std::string product = detail::add_product<Bound::has_bias>(graph, in.name, weights, Bound::channels,
                                                                       Bound::key_heads * shared * Width);
      std::string columns = graph.reshape(product, Shape{Bound::length, Bound::key_heads, shared, Width});
      if constexpr (Operator::is_rotary)
        if (rotates) columns = rotated<Bound, T>(graph, columns);
      return graph.node("Transpose", {columns}, {{"perm", order}});
    };
    const std::string query = heads(Heads / Bound::key_heads, true, {0, 2, 3, 1, 4});
    const std::string key = heads(1, true, {0, 2, 3, 4, 1});
    const std::string value = heads(1, false, {0, 2, 3, 1, 4});
    const std::string scale = graph.number("scale", T{1} / static_cast<T>(std::sqrt(static_cast<double>(Width))));
    std::string scores = graph.node("Mul", {graph.node("MatMul", {query, key}), scale});
    if constexpr (Options::is_causal) {
      Tensor<T> mask{Shape{Bound::length, Bound::length}};
      for (std::size_t of = 0; of < Bound::length; ++of)
        for (std::size_t to = 0; to < Bound::length; ++to)
          mask[of * Bound::length + to] = to > of ? static_cast<T>(-std::numeric_limits<float>::infinity()) : T{0};
      scores = graph.node("Add", {scores, graph.constant("mask", TensorView<const T>{mask})});
    }
    const std::string attention = graph.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
    const std::string attended = graph.node("Transpose", {graph.node("MatMul", {attention, value})},
                                            {{"perm", std::vector<std::int64_t>{0, 3, 1, 2, 4}}});
    const std::string joined = graph.reshape(attended, Shape{Bound::length, Bound::columns});
    return {detail::add_product<Bound::has_bias>(graph, joined, weights, Bound::columns, Bound::channels),
            Bound::Output::shape()};
  }

 private:
  static constexpr bool is_rotary = nn::MultiHeadAttention<Heads, Width, Options>::is_rotary;

  /// x * cosines + (x · swap) * sines; `swap` exchanges the columns of each pair, and changes the sign of the first.
  template <class Bound, class T>
  static std::string rotated(Graph& graph, const std::string& x) {
    constexpr std::size_t half = Width / 2;
    Tensor<T> cosines{Shape{Bound::length, 1, 1, Width}};
    Tensor<T> sines{cosines.shape()};
    Tensor<T> swap{Shape{Width, Width}};
    std::vector<T> rotations(Bound::length * Width);
    const nn::detail::RotationsOf<T> set{rotations.data(), half, Options::Positions::base};
    for (std::size_t i = 0; i < Bound::length * half; ++i) set(i);
    for (std::size_t i = 0; i < cosines.size(); ++i) {
      const std::size_t at = 2 * (i / Width * half + i % half);
      cosines[i] = rotations[at];
      sines[i] = rotations[at + 1];
    }
    for (std::size_t column = 0; column < half; ++column) {
      swap[(column + half) * Width + column] = T{-1};
      swap[column * Width + column + half] = T{1};
    }
    const auto constant = [&](const char* name, const Tensor<T>& values) {
      return graph.constant(name, TensorView<const T>{values});
    };
    const std::string swapped = graph.node("MatMul", {x, constant("swap", swap)});
    return graph.node("Add", {graph.node("Mul", {x, constant("cosines", cosines)}),
                              graph.node("Mul", {swapped, constant("sines", sines)})});
  }
};

/// Sum of the branches.
template <class... Branch>
struct Operator<nn::Add<Branch...>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    const std::vector<Value> outputs = detail::add_branches<Bound>(graph, x, weights);
    Value y = outputs.front();
    y.name = graph.node("Sum", detail::names_of(outputs));
    return y;
  }
};
/// Products of the branches.
template <class... Branch>
struct Operator<nn::Multiply<Branch...>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    const std::vector<Value> outputs = detail::add_branches<Bound>(graph, x, weights);
    Value y = outputs.front();
    for (std::size_t other = 1; other < outputs.size(); ++other)
      y.name = graph.node("Mul", {y.name, outputs[other].name});
    return y;
  }
};
/// Concat of the branches' channels.
template <class... Branch>
struct Operator<nn::Concatenate<Branch...>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    const std::vector<Value> outputs = detail::add_branches<Bound>(graph, x, weights);
    const bool first = outputs.front().channels_first;
    return {graph.node("Concat", detail::names_of(outputs), {{"axis", std::int64_t{first ? 1 : -1}}}),
            Bound::Output::shape(), first};
  }
};
/// The operators of its layers.
template <class L>
struct Operator<nn::Recomputed<L>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    return detail::add_branches<Bound>(graph, x, weights).front();
  }
};
/// The operators of all blocks.
template <std::size_t Count, class Block>
struct Operator<nn::Repeat<Count, Block>> {
  template <class Bound, class Weights>
  static Value add(Graph& graph, const Value& x, Weights& weights) {
    Value y = x;
    for (std::size_t block = 0; block < Count; ++block) {
      graph.enter(concat(block));
      y = detail::add_layers<typename Bound::Block>(graph, y, weights);
      graph.leave();
    }
    return y;
  }
};

}  // namespace dist::onnx

#ifndef DIST_COMPILED
#include <dist/onnx/operators.ipp>
#endif
