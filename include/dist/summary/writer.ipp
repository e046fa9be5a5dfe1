#pragma once

#include <string_view>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/summary/protobuf.hpp>
#include <dist/summary/writer.hpp>

namespace dist::summary::detail {

/// Returns an AttrValue with a list of one shape.
[[nodiscard]] inline std::string shape_list(std::span<const std::int64_t> extents) {
  return protobuf([&](Protobuf& value) {
    value.add_message(1, protobuf([&](Protobuf& list) { list.add_message(7, shape_message(extents)); }));
  });
}

}  // namespace dist::summary::detail

namespace dist::summary {

DIST_INLINE std::string graph_def(std::span<const Node> nodes) {
  using detail::Protobuf, detail::protobuf;
  std::vector<std::string> names;
  for (const Node& node : nodes) {
    detail::require_text("the name of a node", node.name);
    detail::require_text(concat("an op of node ", quoted(node.name)), node.op);
    names.push_back(node.name);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw InvalidArgument(concat("Two nodes of a graph are called ", quoted(*twice)), "inputs refer to nodes by name",
                          "Give each node a unique name");
  return protobuf([&](Protobuf& graph) {
    for (const Node& node : nodes)
      graph.add_message(
          1, protobuf([&](Protobuf& message) {
            message.add_string(1, node.name);
            message.add_string(2, node.op);
            for (const std::string& input : node.inputs) {
              if (!std::binary_search(names.begin(), names.end(), input))
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
    // The lowest version whose nodes may have arbitrary attributes.
    graph.add_message(4, protobuf([](Protobuf& versions) { versions.add_int32(1, 22); }));
  });
}

DIST_INLINE std::string version_event(double wall_time) {
  return detail::protobuf([&](detail::Protobuf& event) {
    event.add_double(1, wall_time);
    event.add_string(3, "brain.Event:2");
  });
}

DIST_INLINE std::string summary_event(double wall_time, std::int64_t step, std::string_view tag, const Value& value) {
  using detail::Protobuf, detail::protobuf;
  detail::require_text("a tag", tag);
  const std::string metadata = protobuf([&](Protobuf& message) {
    message.add_message(1, protobuf([&](Protobuf& plugin) {
                          plugin.add_string(1, value.plugin);
                          if (!value.content.empty()) plugin.add_bytes(2, value.content);
                        }));
  });
  const std::string summary = protobuf([&](Protobuf& message) {
    message.add_message(1, protobuf([&](Protobuf& entry) {
                          entry.add_string(1, tag.data(), tag.size());
                          entry.add_message(8, value.tensor);
                          entry.add_message(9, metadata);
                        }));
  });
  return protobuf([&](Protobuf& event) {
    event.add_double(1, wall_time);
    event.add_int64(2, step);
    event.add_message(5, summary);
  });
}

DIST_INLINE std::string graph_event(double wall_time, const std::string& graph_def) {
  return detail::protobuf([&](detail::Protobuf& event) {
    event.add_double(1, wall_time);
    event.add_bytes(4, graph_def);
  });
}

DIST_INLINE double Writer::seconds_since_1970() {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace dist::summary
