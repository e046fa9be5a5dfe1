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

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/protobuf.hpp>
#include <dist/nn/parameter.hpp>

namespace dist::onnx {

/// One tensor of a layer.
template <class T>
struct NamedTensor {
  std::string name;            ///< such as "dense/kernel"
  TensorView<const T> values;  ///< the elements with their shape, without padding
};

/// A network's parameters, or its state. The layers take them in order.
template <class T>
class Tensors {
 public:
  /// `layout` describes the tensors in `all`, which has padding between them. It must outlive this object.
  Tensors(std::span<const nn::Parameter> layout, Tensor<T> all) : layout_(layout), all_(std::move(all)) {}

  /// Returns the next tensor of the layout. Valid as long as this object.
  NamedTensor<T> next() {
    const nn::Parameter& tensor = layout_[next_++];
    return {tensor.name(), TensorView<const T>{all_.data() + tensor.offset, tensor.shape}};
  }

 private:
  std::span<const nn::Parameter> layout_;
  Tensor<T> all_;  // with padding
  std::size_t next_ = 0;
};

/// A network's parameters, and its state, of type `S`.
template <class T, class S>
struct Weights {
  /// The type of the parameters, and of the batch in the graph.
  using Element = T;
  Tensors<T> parameters;  ///< trained tensors, such as kernels
  Tensors<S> state;       ///< other tensors, such as moving statistics
};

/// The version of ONNX' operators in models.
inline constexpr std::int64_t opset = 17;
/// The version of ONNX' file format, which introduced `opset`.
inline constexpr std::int64_t format_version = 8;

/// Returns ONNX' number of an element type (TensorProto.DataType).
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

/// A batch in the graph: its tensor's name, and a row's shape with channels last. In the tensor, channels may follow
/// the batch axis instead, as in ONNX' image operators.
struct Value {
  std::string name;             ///< of the tensor in the graph
  Shape row;                    ///< without the batch
  bool channels_first = false;  ///< in the tensor, not in `row`
};

/// A constant attribute of an operator.
struct Attribute {
  std::string_view name;                                                ///< as in ONNX' specification of the operator
  std::variant<std::int64_t, double, std::vector<std::int64_t>> value;  ///< its type is the attribute's type
};

/// A model's graph. Nodes are added in the order of computation. Names are unique, with the layers' scopes:
/// "block/conv2d/Conv".
class Graph {
 public:
  /// Adds the model's input, a batch of any number of rows of type `T`.
  template <class T>
  Value input(const Shape& row) {
    type_ = data_type(io::element_type<T>);
    names_["input"] = names_["output"] = 1;
    io::detail::Protobuf{graph_}.add_message(11, described("input", row));
    return {"input", row};
  }

  /// Opens a scope: names begin with `name`, until `leave`.
  void enter(std::string_view name);
  /// Closes the scope that `enter` opened last.
  void leave();

  /// Adds an operator. Returns the name of its output.
  std::string node(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes = {});

  /// Adds a constant tensor, and returns its unique name: `constant` in the scope, `parameter` as given.
  template <class T>
  std::string constant(std::string_view name, TensorView<const T> values) {
    return add_tensor(unique(concat(scope_, name)), values);
  }
  /// Adds a parameter of the network under its own name, without the scope.
  template <class T>
  std::string parameter(const std::string& name, TensorView<const T> values) {
    return add_tensor(unique(name), values);
  }
  /// Adds a constant without axes.
  template <class T>
  std::string number(std::string_view name, T value) {
    return constant(name, TensorView<const T>{&value, Shape{}});
  }

  /// Return `x` with channels after the batch axis, or last, transposed if necessary.
  [[nodiscard]] Value channels_first(const Value& x) { return x.channels_first ? x : transposed(x); }
  /// Returns `x` with channels last, transposed if necessary.
  [[nodiscard]] Value channels_last(const Value& x) { return x.channels_first ? transposed(x) : x; }
  /// Returns `x` with channels as in `like`.
  [[nodiscard]] Value with_channels_as(const Value& like, const Value& x);

  /// Reshapes each row of `x` to `extents`, as in the tensor, without the batch.
  std::string reshape(const std::string& x, const Shape& extents);

  /// Returns the bytes of the model whose output is `y`.
  [[nodiscard]] std::string model(const Value& y);

 private:
  /// Returns the name, with a number if it is in use.
  [[nodiscard]] std::string unique(const std::string& name);

  void add_node(std::string_view op, const std::vector<std::string>& inputs, const std::vector<Attribute>& attributes,
                const std::string& output);

  [[nodiscard]] static std::string encoded(const Attribute& attribute);

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

  /// Returns a batch's description as the model's input or output.
  [[nodiscard]] std::string described(std::string_view name, const Shape& row) const;

  [[nodiscard]] Value transposed(const Value& x);

  std::string graph_;  // encoded
  std::int32_t type_ = 0;
  std::string scope_;
  std::vector<std::size_t> lengths_;  // of the outer scopes
  std::map<std::string, std::size_t> names_;
};

}  // namespace dist::onnx

#ifndef DIST_COMPILED
#include <dist/onnx/graph.ipp>
#endif
