#pragma once

#include <dist/onnx/graph.hpp>

namespace dist::onnx {

DIST_INLINE void Graph::enter(std::string_view name) {
  lengths_.push_back(scope_.size());
  scope_ = concat(unique(concat(scope_, name)), "/");
}

DIST_INLINE void Graph::leave() {
  scope_.resize(lengths_.back());
  lengths_.pop_back();
}

DIST_INLINE std::string Graph::node(std::string_view op, const std::vector<std::string>& inputs,
                                    const std::vector<Attribute>& attributes) {
  std::string output = unique(concat(scope_, op));
  add_node(op, inputs, attributes, output);
  return output;
}

DIST_INLINE Value Graph::with_channels_as(const Value& like, const Value& x) {
  return like.channels_first ? channels_first(x) : channels_last(x);
}

DIST_INLINE std::string Graph::reshape(const std::string& x, const Shape& extents) {
  std::vector<std::int64_t> shape{0};
  for (const std::size_t extent : extents.extents()) shape.push_back(static_cast<std::int64_t>(extent));
  const std::string to = constant("shape", TensorView<const std::int64_t>{shape.data(), Shape{shape.size()}});
  return node("Reshape", {x, to});
}

DIST_INLINE std::string Graph::model(const Value& y) {
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

DIST_INLINE std::string Graph::unique(const std::string& name) {
  const std::size_t before = names_[name]++;
  return before == 0 ? name : unique(concat(name, "_", before));
}

DIST_INLINE void Graph::add_node(std::string_view op, const std::vector<std::string>& inputs,
                                 const std::vector<Attribute>& attributes, const std::string& output) {
  io::detail::Protobuf{graph_}.add_message(1, io::detail::protobuf([&](auto& message) {
                                             for (const std::string& input : inputs) message.add_string(1, input);
                                             message.add_string(2, output);
                                             message.add_string(3, output);
                                             message.add_string(4, op.data(), op.size());
                                             for (const Attribute& attribute : attributes)
                                               message.add_message(5, encoded(attribute));
                                           }));
}

DIST_INLINE std::string Graph::encoded(const Attribute& attribute) {
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

DIST_INLINE std::string Graph::described(std::string_view name, const Shape& row) const {
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

DIST_INLINE Value Graph::transposed(const Value& x) {
  Value y = x;
  const auto rank = static_cast<std::int64_t>(x.row.rank());
  if (rank < 2) return y;  // channels are the only axis
  std::vector<std::int64_t> order{0};
  if (!x.channels_first) order.push_back(rank);
  for (std::int64_t axis = 1; axis < rank; ++axis) order.push_back(x.channels_first ? axis + 1 : axis);
  if (x.channels_first) order.push_back(1);
  y.name = node("Transpose", {x.name}, {{"perm", order}});
  y.channels_first = !x.channels_first;
  return y;
}

}  // namespace dist::onnx
