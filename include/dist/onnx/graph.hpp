#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/protobuf.hpp>

namespace dist::onnx {

/// The version of ONNX' operators that models use, and that of the format, which came with it.
inline constexpr std::int64_t opset = 17;
inline constexpr std::int64_t format_version = 8;

/// ONNX' number of a type of elements (TensorProto.DataType).
[[nodiscard]] constexpr std::int32_t data_type(io::ElementType type) noexcept {
  switch (type) {
    case io::ElementType::f32:
      return 1;
    case io::ElementType::u8:
      return 2;
    case io::ElementType::i8:
      return 3;
    case io::ElementType::u16:
      return 4;
    case io::ElementType::i16:
      return 5;
    case io::ElementType::i32:
      return 6;
    case io::ElementType::i64:
      return 7;
    case io::ElementType::boolean:
      return 9;
    case io::ElementType::f16:
      return 10;
    case io::ElementType::f64:
      return 11;
    case io::ElementType::u32:
      return 12;
    case io::ElementType::u64:
      return 13;
    case io::ElementType::bf16:
      break;
  }
  return 16;
}

/// A batch in the graph: the name of its tensor and the shape of a row, whose last axis are channels. In the tensor they may
/// come first, behind the axis of the batch, as ONNX' operators for images have them.
struct Value {
  std::string name;
  Shape row;
  bool channels_first = false;
};

/// A constant of an operator.
struct Attribute {
  std::string_view name;
  std::variant<std::int64_t, double, std::vector<std::int64_t>> value;
};

/// The graph of a model, whose nodes are added in the order in which they compute. Nodes and tensors get names of their own
/// from the scopes of the layers: "block/conv2d/Conv".
class Graph {
 public:
  /// The input of the model, a batch of any number of rows, with elements of type `T`.
  template <class T>
  Value input(const Shape& row) {
    type_ = data_type(io::element_type<T>);
    names_["input"] = names_["output"] = 1;
    io::detail::Protobuf{graph_}.add_message(11, described("input", row));
    return {"input", row};
  }

  /// Names from here on begin with `name`, until `leave`.
  void enter(std::string_view name) {
    lengths_.push_back(scope_.size());
    scope_ = concat(unique(concat(scope_, name)), "/");
  }
  void leave() {
    scope_.resize(lengths_.back());
    lengths_.pop_back();
  }

  /// Adds an operator, and returns the name of its output.
  std::string node(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes = {}) {
    std::string output = unique(concat(scope_, op));
    add_node(op, inputs, attributes, output);
    return output;
  }

  /// Adds a tensor that the model holds, under a name of the scope, and returns that; `parameter` is one under its own name.
  template <class T>
  std::string constant(std::string_view name, TensorView<const T> values) {
    return add_tensor(unique(concat(scope_, name)), values);
  }
  template <class T>
  std::string parameter(const std::string& name, TensorView<const T> values) {
    return add_tensor(unique(name), values);
  }
  template <class T>
  std::string number(std::string_view name, T value) {
    return constant(name, TensorView<const T>{&value, Shape{}});
  }

  /// `x` with channels behind the axis of the batch, or at the end: transposed where they are not there yet.
  [[nodiscard]] Value channels_first(const Value& x) { return x.channels_first ? x : transposed(x); }
  [[nodiscard]] Value channels_last(const Value& x) { return x.channels_first ? transposed(x) : x; }
  /// In the same place as those of `like`.
  [[nodiscard]] Value with_channels_as(const Value& like, const Value& x) {
    return like.channels_first ? channels_first(x) : channels_last(x);
  }

  /// The elements of each row under other extents, which are those of the tensor. 0 stands for the batch.
  std::string reshape(const std::string& x, const Shape& extents) {
    std::vector<std::int64_t> shape{0};
    for (const std::size_t extent : extents.extents()) shape.push_back(static_cast<std::int64_t>(extent));
    const std::string to = constant("shape", TensorView<const std::int64_t>{shape.data(), Shape{shape.size()}});
    return node("Reshape", {x, to});
  }

  /// The bytes of the model whose output is `y`.
  [[nodiscard]] std::string model(const Value& y) {
    const Value last = channels_last(y);
    add_node("Identity", {last.name}, {}, "output");
    io::detail::Protobuf graph{graph_};
    graph.add_string(2, "dist");
    graph.add_message(12, described("output", last.row));
    return io::detail::protobuf([&](auto& message) {
      message.add_int64(1, format_version);
      message.add_string(2, "dist");
      message.add_message(7, graph_);
      message.add_message(8, io::detail::protobuf([](auto& operators) {
                            operators.add_string(1, "");
                            operators.add_int64(2, opset);
                          }));
    });
  }

 private:
  /// The name, or the name and a number where it was given before.
  [[nodiscard]] std::string unique(const std::string& name) {
    const std::size_t before = names_[name]++;
    return before == 0 ? name : unique(concat(name, "_", before));
  }

  void add_node(std::string_view op, const std::vector<std::string>& inputs, const std::vector<Attribute>& attributes,
                const std::string& output) {
    io::detail::Protobuf{graph_}.add_message(1, io::detail::protobuf([&](auto& message) {
                                               for (const std::string& input : inputs) message.add_string(1, input);
                                               message.add_string(2, output);
                                               message.add_string(3, output);
                                               message.add_string(4, op.data(), op.size());
                                               for (const Attribute& attribute : attributes)
                                                 message.add_message(5, encoded(attribute));
                                             }));
  }

  [[nodiscard]] static std::string encoded(const Attribute& attribute) {
    constexpr int of_float = 1;
    constexpr int of_integer = 2;
    constexpr int of_integers = 7;
    return io::detail::protobuf([&](auto& message) {
      message.add_string(1, attribute.name.data(), attribute.name.size());
      if (const auto* const real = std::get_if<double>(&attribute.value)) {
        message.add_float(2, static_cast<float>(*real));
        message.add_enum(20, of_float);
      } else if (const auto* const integer = std::get_if<std::int64_t>(&attribute.value)) {
        message.add_int64(3, *integer);
        message.add_enum(20, of_integer);
      } else {
        for (const std::int64_t each : std::get<std::vector<std::int64_t>>(attribute.value)) message.add_int64(8, each);
        message.add_enum(20, of_integers);
      }
    });
  }

  template <class T>
  std::string add_tensor(const std::string& name, TensorView<const T> values) {
    const auto bytes = io::detail::written_bytes(std::span<const T>{values.data(), values.size()});
    io::detail::Protobuf{graph_}.add_message(5, io::detail::protobuf([&](auto& message) {
                                               for (const std::size_t extent : values.shape().extents())
                                                 message.add_int64(1, static_cast<std::int64_t>(extent));
                                               message.add_int32(2, data_type(io::element_type<T>));
                                               message.add_string(8, name);
                                               message.add_bytes(9, reinterpret_cast<const char*>(bytes.data()),
                                                                 bytes.size());
                                             }));
    return name;
  }

  /// A batch as the model's input or output.
  [[nodiscard]] std::string described(std::string_view name, const Shape& row) const {
    using io::detail::protobuf;
    const std::string shape = protobuf([&](auto& axes) {
      axes.add_message(1, protobuf([](auto& axis) { axis.add_string(2, "batch"); }));
      for (const std::size_t extent : row.extents())
        axes.add_message(1, protobuf([&](auto& axis) { axis.add_int64(1, static_cast<std::int64_t>(extent)); }));
    });
    const std::string tensor = protobuf([&](auto& message) {
      message.add_int32(1, type_);
      message.add_message(2, shape);
    });
    return protobuf([&](auto& message) {
      message.add_string(1, name.data(), name.size());
      message.add_message(2, protobuf([&](auto& type) { type.add_message(1, tensor); }));
    });
  }

  [[nodiscard]] Value transposed(const Value& x) {
    Value y = x;
    const auto rank = static_cast<std::int64_t>(x.row.rank());
    if (rank < 2) return y;  // channels are first and last
    std::vector<std::int64_t> order{0};
    if (!x.channels_first) order.push_back(rank);
    for (std::int64_t axis = 1; axis < rank; ++axis) order.push_back(x.channels_first ? axis + 1 : axis);
    if (x.channels_first) order.push_back(1);
    y.name = node("Transpose", {x.name}, {{"perm", order}});
    y.channels_first = !x.channels_first;
    return y;
  }

  std::string graph_;  // encoded
  std::int32_t type_ = 0;
  std::string scope_;
  std::vector<std::size_t> lengths_;  // of the scopes around
  std::map<std::string, std::size_t> names_;
};

}  // namespace dist::onnx
