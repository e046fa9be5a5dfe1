/// Events, the records of an event file: serialised messages with a wall time, in seconds since 1970 (UTC).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <dist/summary/protobuf.hpp>
#include <dist/summary/value.hpp>

namespace dist::summary {

/// The first event of every file, which says the format's version.
[[nodiscard]] inline std::string version_event(double wall_time) {
  return detail::protobuf([&](detail::Protobuf& event) {
    event.add_double(1, wall_time);
    event.add_string(3, "brain.Event:2");
  });
}

/// `value` under `tag` at `step`. Throws InvalidArgument for a tag that is empty or no text.
[[nodiscard]] inline std::string summary_event(double wall_time, std::int64_t step, std::string_view tag,
                                               const Value& value) {
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

/// The graph of the model; `graph_def` is a serialised GraphDef, see graph.hpp.
[[nodiscard]] inline std::string graph_event(double wall_time, const std::string& graph_def) {
  return detail::protobuf([&](detail::Protobuf& event) {
    event.add_double(1, wall_time);
    event.add_bytes(4, graph_def);
  });
}

}  // namespace dist::summary
