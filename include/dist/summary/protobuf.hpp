/// Messages of event files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/io/protobuf.hpp>

namespace dist::summary::detail {

using io::detail::Protobuf;
using io::detail::protobuf;

/// A TensorShapeProto; -1 is an axis of any extent.
[[nodiscard]] inline std::string shape_message(std::span<const std::int64_t> extents) {
  return protobuf([&](Protobuf& shape) {
    for (const std::int64_t extent : extents)
      shape.add_message(2, protobuf([&](Protobuf& axis) { axis.add_int64(1, extent); }));
  });
}

/// Throws InvalidArgument unless a field of type string may hold `words`: readers refuse the whole message otherwise.
/// `what` is what errors call them.
inline void require_text(std::string_view what, std::string_view words) {
  if (words.empty())
    throw InvalidArgument(concat("An event file got ", what, " that is empty"), "TensorBoard shows it under its name",
                          "Give it a name");
  if (printable(words, 2 * words.size()) != words)
    throw InvalidArgument(concat("An event file got ", what, " that is no text"),
                          concat(quoted(words), " has control characters, or is no UTF-8"), "Use a name of letters");
}

}  // namespace dist::summary::detail
