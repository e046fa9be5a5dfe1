/// Messages of event files. Only their writers include this header.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/io/protobuf.hpp>

namespace dist::summary::detail {

using io::detail::Protobuf;
using io::detail::protobuf;

/// Returns a TensorShapeProto; -1 is an axis of any extent.
[[nodiscard]] inline std::string shape_message(std::span<const std::int64_t> extents) {
  return protobuf([&](Protobuf& shape) {
    for (const std::int64_t extent : extents)
      shape.add_message(2, protobuf([&](Protobuf& axis) { axis.add_int64(1, extent); }));
  });
}

/// Element types, numbered like TensorFlow's DataType.
enum class DataType : std::int32_t { float32 = 1, float64 = 2, string = 7 };

/// Returns a TensorProto with these extents, whose elements `add_elements` adds.
[[nodiscard]] inline std::string tensor(DataType type, std::span<const std::int64_t> extents,
                                        dist::detail::FunctionRef<void(Protobuf&)> add_elements) {
  return protobuf([&](Protobuf& tensor) {
    tensor.add_enum(1, static_cast<std::int32_t>(type));
    tensor.add_message(2, shape_message(extents));
    add_elements(tensor);
  });
}
[[nodiscard]] inline std::string tensor(DataType type, std::initializer_list<std::int64_t> extents,
                                        dist::detail::FunctionRef<void(Protobuf&)> add_elements) {
  return tensor(type, std::span<const std::int64_t>{extents.begin(), extents.size()}, add_elements);
}

/// Throws InvalidArgument unless `words` is non-empty, printable UTF-8: readers would reject the whole message. `what`
/// is its name in errors.
inline void require_text(std::string_view what, std::string_view words) {
  if (words.empty())
    throw InvalidArgument(concat("An event file got ", what, " that is empty"), "TensorBoard shows it under its name",
                          "Give it a name");
  if (printable(words, 2 * words.size()) != words)
    throw InvalidArgument(concat("An event file got ", what, " that is not text"),
                          concat(quoted(words), " has control characters, or is not valid UTF-8"),
                          "Use a name of printable characters");
}

}  // namespace dist::summary::detail
