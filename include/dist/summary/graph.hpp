#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/summary/protobuf.hpp>

namespace dist::summary {

/// A node of a model's graph, such as a layer. TensorBoard groups nodes by the parts of their names between slashes.
struct Node {
  std::string name{};                 ///< no other node has it: "block_1/conv2d"
  std::string op{};                   ///< what it does: "Conv2D"
  std::vector<std::string> inputs{};  ///< the names of the nodes whose outputs it takes, in order
  std::vector<std::int64_t> shape{};  ///< of its output; -1 for an axis of any extent; without axes: not said
  std::vector<std::pair<std::string, std::string>> attributes{};  ///< what else is to be shown: {"kernel", "3 x 3"}
};

namespace detail {

/// An AttrValue that is a list of one shape.
[[nodiscard]] inline std::string shape_list(std::span<const std::int64_t> extents) {
  return protobuf([&](Protobuf& value) {
    value.add_message(1, protobuf([&](Protobuf& list) { list.add_message(7, shape_message(extents)); }));
  });
}

}  // namespace detail

/// The serialised GraphDef of a model. Throws InvalidArgument, which names the node, for a name that two nodes have, for
/// an input that is no node, and for names that are empty or no text.
[[nodiscard]] inline std::string graph_def(std::span<const Node> nodes) {
  using detail::Protobuf, detail::protobuf;
  std::vector<std::string_view> names;
  for (const Node& node : nodes) {
    detail::require_text("the name of a node", node.name);
    detail::require_text(concat("an op of node ", quoted(node.name)), node.op);
    names.push_back(node.name);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw InvalidArgument(concat("Two nodes of a graph are called ", quoted(*twice)),
                          "names are how inputs refer to nodes", "Give each node a name of its own");
  return protobuf([&](Protobuf& graph) {
    for (const Node& node : nodes)
      graph.add_message(
          1, protobuf([&](Protobuf& message) {
            message.add_string(1, node.name);
            message.add_string(2, node.op);
            for (const std::string& input : node.inputs) {
              if (!std::binary_search(names.begin(), names.end(), std::string_view{input}))
                throw InvalidArgument(concat("Node ", quoted(node.name), " of a graph has an unknown input"),
                                      concat("no node is called ", quoted(input)), "Name a node of the same graph");
              message.add_string(3, input);
            }
            const auto add_attribute = [&](const std::string& key, const std::string& value) {
              message.add_message(5, protobuf([&](Protobuf& entry) {
                                    entry.add_string(1, key);
                                    entry.add_message(2, value);
                                  }));
            };
            if (!node.shape.empty()) add_attribute("_output_shapes", detail::shape_list(node.shape));
            for (const auto& attribute : node.attributes) {
              detail::require_text(concat("an attribute of node ", quoted(node.name)), attribute.first);
              add_attribute(attribute.first, protobuf([&](Protobuf& words) { words.add_bytes(2, attribute.second); }));
            }
          }));
    // The least version whose nodes may have any attribute.
    graph.add_message(4, protobuf([](Protobuf& versions) { versions.add_int32(1, 22); }));
  });
}

}  // namespace dist::summary
