#include <dist/onnx/graph.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <summary/wire.hpp>
#include <vector>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/sequential.hpp>

using dist::Shape;
using dist::TensorView;
using dist::io::ElementType;
using dist::onnx::Graph;
using dist_test::Wire;
using Strings = std::vector<std::string>;

namespace {

/// Returns the messages of field `number`.
std::vector<Wire> messages(const Wire& wire, std::uint64_t number) {
  std::vector<Wire> all;
  for (const auto& bytes : wire.strings(number)) all.emplace_back(bytes);
  return all;
}

}  // namespace

TEST_CASE("a model has opset 17, and its graph has an input and an output with any number of rows") {
  Graph graph;
  const auto x = graph.input<float>(Shape{4});
  const Wire model{graph.model({graph.node("Relu", {x.name}), Shape{4}})};
  CHECK(model.integer(1) == 8);
  CHECK(model.message(8).integer(2) == 17);
  const Wire inside = model.message(7);
  const auto input = messages(inside, 11);
  REQUIRE(input.size() == 1);
  CHECK(input[0].bytes(1) == "input");
  const Wire tensor = input[0].message(2).message(1);
  CHECK(tensor.integer(1) == 1);
  const auto axes = messages(tensor.message(2), 1);
  REQUIRE(axes.size() == 2);
  CHECK(axes[0].bytes(2) == "batch");
  CHECK(axes[1].integer(1) == 4);
  const auto nodes = messages(inside, 1);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].strings(1) == Strings{"input"});
  CHECK(nodes[0].bytes(4) == "Relu");
  CHECK(nodes[1].strings(1) == nodes[0].strings(2));
  CHECK(nodes[1].bytes(2) == "output");
}

TEST_CASE("names have the prefix of their scope, and are unique") {
  Graph graph;
  CHECK(graph.node("Relu", {"input"}) == "Relu");
  graph.enter("add");
  graph.enter("dense");
  CHECK(graph.node("Add", {"input"}) == "add/dense/Add");
  CHECK(graph.node("Add", {"input"}) == "add/dense/Add_1");
  CHECK(graph.number("half", 0.5F) == "add/dense/half");
  graph.leave();
  graph.enter("dense");
  CHECK(graph.node("Add", {"input"}) == "add/dense_1/Add");
  graph.leave();
  graph.leave();
  const float one = 1;
  CHECK(graph.parameter("Relu", TensorView<const float>{&one, Shape{}}) == "Relu_1");
}

TEST_CASE("attributes and tensors have their types") {
  Graph graph;
  const std::vector<double> values{1, 2, 3, 4, 5, 6};
  graph.input<double>(Shape{1});
  graph.parameter("kernel", TensorView<const double>{values.data(), Shape{2, 3}});
  const std::string last = graph.node(
      "Some", {"input"}, {{"axis", std::int64_t{-1}}, {"epsilon", 0.5}, {"pads", std::vector<std::int64_t>{1, 2}}});
  const Wire model{graph.model({last, Shape{1}})};
  const Wire inside = model.message(7);
  const Wire tensor = inside.message(5);
  CHECK(tensor.bytes(8) == "kernel");
  CHECK(tensor.integer(2) == 11);
  CHECK(tensor.bytes(9) == std::string(reinterpret_cast<const char*>(values.data()), 48));
  const auto attributes = messages(messages(inside, 1)[0], 5);
  REQUIRE(attributes.size() == 3);
  CHECK(static_cast<std::int64_t>(attributes[0].integer(3)) == -1);
  CHECK(attributes[0].integer(20) == 2);
  CHECK(attributes[1].integer(20) == 1);
  CHECK(attributes[2].all(8).size() == 2);
  CHECK(attributes[2].integer(20) == 7);
}

TEST_CASE("batches are transposed if channels are at another axis, unless they have one axis only") {
  Graph graph;
  const auto image = graph.input<float>(Shape{5, 6, 3});
  const auto first = graph.channels_first(image);
  CHECK(first.channels_first);
  CHECK(first.name == "Transpose");
  CHECK(graph.channels_first(first).name == first.name);
  CHECK(graph.channels_last(image).name == "input");
  CHECK(graph.with_channels_as(image, first).name == "Transpose_1");
  CHECK(graph.with_channels_as(first, image).channels_first);
  const dist::onnx::Value row{"row", Shape{7}};
  CHECK(graph.channels_first(row).name == "row");
  const Wire inside = Wire{graph.model(image)}.message(7);
  const auto order = [&](std::size_t node) {
    std::vector<std::uint64_t> axes;
    for (const auto& field : messages(messages(inside, 1)[node], 5)[0].all(8)) axes.push_back(field.value);
    return axes;
  };
  CHECK(order(0) == std::vector<std::uint64_t>{0, 3, 1, 2});
  CHECK(order(1) == std::vector<std::uint64_t>{0, 2, 3, 1});
}

TEST_CASE("element types have ONNX' numbers") {
  // onnx.TensorProto.DataType: FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, BOOL, FLOAT16, DOUBLE, UINT32, UINT64,
  // BFLOAT16.
  const ElementType types[] = {ElementType::f32, ElementType::u8,  ElementType::i8,  ElementType::u16,
                               ElementType::i16, ElementType::i32, ElementType::i64, ElementType::boolean,
                               ElementType::f16, ElementType::f64, ElementType::u32, ElementType::u64,
                               ElementType::bf16};
  const std::int32_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16};
  for (std::size_t i = 0; i < std::size(types); ++i) CHECK(dist::onnx::data_type(types[i]) == numbers[i]);
}

namespace nn = dist::nn;

TEST_CASE("tensors are returned in order, without padding") {
  using Net = nn::Sequential<nn::Input<2>, nn::Dense<3>, nn::Dense<1>>;
  dist::Tensor<float> all{dist::Shape{Net::padded_count}};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  dist::onnx::Tensors<float> tensors{Net::parameters, std::move(all)};
  for (const char* name : {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"}) {
    const auto next = tensors.next();
    CHECK(next.name == name);
    CHECK(next.values.data()[0] == static_cast<float>(nn::detail::parameter_named(Net::parameters, name).offset));
    CHECK(next.values.shape() == nn::detail::parameter_named(Net::parameters, name).shape);
  }
}
