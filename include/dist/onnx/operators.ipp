#pragma once

#include <dist/onnx/operators.hpp>

namespace dist::onnx::detail {

DIST_INLINE std::vector<std::string> names_of(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value& value : values) names.push_back(value.name);
  return names;
}

DIST_INLINE Value add_on_images(Graph& graph, const Value& x, std::string_view op,
                                const std::vector<Attribute>& attributes) {
  Value y = graph.channels_first(x);
  y.name = graph.node(op, {y.name}, attributes);
  return y;
}

DIST_INLINE Value add_global_pool(Graph& graph, const Value& x, std::string_view op) {
  const Value pooled = add_on_images(graph, x, op, {});
  const Shape row{x.row[x.row.rank() - 1]};
  return {graph.reshape(pooled.name, row), row};
}

}  // namespace dist::onnx::detail
