#include <dist/onnx/operators.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include <summary/wire.hpp>

namespace nn = dist::nn;
using dist::Shape;
using dist::onnx::Graph;
using dist::onnx::Value;
using dist_test::Wire;
using Strings = std::vector<std::string>;

namespace {

/// Returns the graph of a network whose parameters are 0, 1, 2, … in memory.
template <class Net>
Wire graph_of() {
  dist::Tensor<float> all{Shape{Net::padded_count}};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  dist::Tensor<float> state{Shape{Net::padded_state_count}};
  dist::onnx::Weights<float, float> weights{{Net::parameters, std::move(all)}, {Net::state, std::move(state)}};
  Graph graph;
  const Value x = graph.input<float>(Net::InputShape::shape());
  return Wire{graph.model(dist::onnx::detail::add_layers<Net>(graph, x, weights))}.message(7);
}
/// Returns the operators in order, without the last one, which names the output.
Strings operators_in(const Wire& graph) {
  Strings operators;
  for (const auto& node : graph.strings(1)) operators.push_back(Wire{node}.bytes(4));
  operators.pop_back();
  return operators;
}

/// A user's activation, and layers.
struct Square {
  template <class T>
  static constexpr T apply(T x) {
    return x * x;
  }
  template <class T>
  static constexpr T gradient_at(T x, T y_gradient) {
    return 2 * x * y_gradient;
  }
};
struct Cube : Square {};
template <bool Described>
struct Twice {
  template <class In>
  struct On {
    using Layer = Twice;
    using Output = In;
    static constexpr std::string_view name = "twice";
    static constexpr auto& parameters = nn::detail::no_parameters;
    static constexpr bool is_view = false;
  };
};

}  // namespace

template <>
struct dist::onnx::ActivationOperator<Square> {
  template <class T>
  static std::string add(Graph& graph, const std::string& x) {
    return graph.node("Mul", {x, x});
  }
};
template <>
struct dist::onnx::Operator<Twice<true>> {
  template <class Bound>
  static Value add(Graph& graph, const Value& x, auto&) {
    return {graph.node("Add", {x.name, x.name}), x.row, x.channels_first};
  }
};

TEST_CASE("images are transposed once before the first operator with channels first, and once at the end") {
  using Net = nn::Sequential<nn::Input<6, 6, 2>, nn::Conv2D<2, 3, nn::Relu>, nn::BatchNormalization<>,
                             nn::Residual<nn::DepthwiseConv2D<3, nn::Linear, 1, nn::Same>>, nn::MaxPool2D<2>>;
  CHECK(operators_in(graph_of<Net>()) ==
        Strings{"Transpose", "Conv", "Relu", "BatchNormalization", "Conv", "Sum", "MaxPool", "Transpose"});
}

TEST_CASE("flattened images have channels last") {
  using Net = nn::Sequential<nn::Input<4, 4, 2>, nn::MaxPool2D<2>, nn::Flatten, nn::Dense<1>>;
  CHECK(operators_in(graph_of<Net>()) == Strings{"Transpose", "MaxPool", "Transpose", "Reshape", "MatMul", "Add"});
}

TEST_CASE("a kernel has layout [filters, channels, height, width], and its own name") {
  const Wire graph = graph_of<nn::Sequential<nn::Input<2, 2, 3>, nn::Conv2D<5, 2>>>();
  const Wire kernel{graph.strings(5)[0]};
  CHECK(kernel.bytes(8) == "conv2d/kernel");
  std::vector<std::uint64_t> extents;
  for (const auto& field : kernel.all(1)) extents.push_back(field.value);
  CHECK(extents == std::vector<std::uint64_t>{5, 3, 2, 2});
  std::vector<float> values(60);
  const std::string bytes = kernel.bytes(9);
  REQUIRE(bytes.size() == 240);
  std::memcpy(values.data(), bytes.data(), 240);
  for (std::size_t filter = 0; filter < 5; ++filter)
    for (std::size_t channel = 0; channel < 3; ++channel)
      for (std::size_t pixel = 0; pixel < 4; ++pixel)
        CHECK(values[(filter * 3 + channel) * 4 + pixel] == static_cast<float>((pixel * 3 + channel) * 5 + filter));
}

TEST_CASE("trained positions and a bias are additions") {
  using Net = nn::Sequential<nn::Input<4>, nn::Embedding<9, 6>, nn::LearnedPositions<>, nn::Bias<>>;
  const Wire graph = graph_of<Net>();
  CHECK(operators_in(graph) == Strings{"Cast", "Gather", "Add", "Add"});
  CHECK(Wire{graph.strings(5).at(1)}.bytes(8) == "position_embedding/embeddings");
  CHECK(Wire{graph.strings(5).at(2)}.bytes(8) == "bias/bias");
}

TEST_CASE("a Repeat adds the operators of each block") {
  using Net =
      nn::Sequential<nn::Input<4>, nn::Named<"blocks", nn::Repeat<2, nn::Recomputed<nn::Residual<nn::Dense<4>>>>>>;
  const Wire graph = graph_of<Net>();
  CHECK(operators_in(graph) == Strings{"MatMul", "Add", "Sum", "MatMul", "Add", "Sum"});
  REQUIRE(graph.strings(5).size() == 4);
  CHECK(Wire{graph.strings(5)[2]}.bytes(8) == "blocks/1/dense/kernel");
  CHECK(Wire{graph.strings(1)[3]}.strings(1)[1] == "blocks/1/dense/kernel");
}

TEST_CASE("a tied table is one tensor of the graph") {
  using Net = nn::Sequential<nn::Input<4>, nn::Named<"wte", nn::Embedding<9, 6>>, nn::Unembed<"wte">>;
  const Wire graph = graph_of<Net>();
  CHECK(operators_in(graph) == Strings{"Cast", "Gather", "Transpose", "MatMul"});
  REQUIRE(graph.strings(5).size() == 1);
  CHECK(Wire{graph.strings(1)[1]}.strings(1)[0] == "wte/embeddings");
  CHECK(Wire{graph.strings(1)[2]}.strings(1)[0] == "wte/embeddings");
}

TEST_CASE("a Conv along one axis has a kernel [filters, channels, window]") {
  const Wire graph = graph_of<nn::Sequential<nn::Input<7, 3>, nn::Conv1D<5, 2, nn::Linear, 2, nn::Same>>>();
  CHECK(operators_in(graph) == Strings{"Transpose", "Conv", "Transpose"});
  const Wire kernel{graph.strings(5)[0]};
  CHECK(kernel.bytes(8) == "conv1d/kernel");
  std::vector<std::uint64_t> extents;
  for (const auto& field : kernel.all(1)) extents.push_back(field.value);
  CHECK(extents == std::vector<std::uint64_t>{5, 3, 2});
}

TEST_CASE("dropout adds no operator, and consumes its state") {
  using Net = nn::Sequential<nn::Input<3>, nn::Dropout<50>, nn::BatchNormalization<>>;
  const Wire graph = graph_of<Net>();
  CHECK(operators_in(graph) == Strings{"BatchNormalization"});
  CHECK(Wire{graph.strings(1)[0]}.strings(1)[3] == "batch_normalization/moving_mean");
}

TEST_CASE("users' layers and activations are added by specialisations, under any name") {
  using Net = nn::Sequential<nn::Input<3>, nn::Named<"mine", Twice<true>>, nn::Dense<2, Square>>;
  const Wire graph = graph_of<Net>();
  CHECK(operators_in(graph) == Strings{"Add", "MatMul", "Add", "Mul"});
  CHECK(Wire{graph.strings(1)[0]}.bytes(3) == "mine/Add");
}

TEST_CASE("a layer or activation without an operator is rejected by name") {
  CHECK_THROWS_WITH_AS((graph_of<nn::Sequential<nn::Input<3>, nn::Dense<2>, nn::Named<"mine", Twice<false>>>>()),
                       doctest::Contains("The layer 'mine' cannot be exported to ONNX"), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS((graph_of<nn::Sequential<nn::Input<3>, nn::Dense<2, Cube>>>()),
                       doctest::Contains("Cube cannot be exported to ONNX"), dist::InvalidArgument);
}
