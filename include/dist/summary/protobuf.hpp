/// Messages of Protocol Buffers, written field by field. The only header that includes protozero's.
#pragma once

#if !__has_include(<protozero/pbf_writer.hpp>)
#error "<protozero/pbf_writer.hpp> of protozero was not found: install libprotozero-dev, and link dist::summary"
#endif

#include <protozero/pbf_writer.hpp>

#include <string>
#include <string_view>

#include <dist/core/error.hpp>

namespace dist::summary::detail {

using Protobuf = protozero::pbf_writer;

/// The bytes of the message that `write` gives its fields.
template <class Write>
[[nodiscard]] std::string protobuf(Write write) {
  std::string bytes;
  Protobuf message{bytes};
  write(message);
  return bytes;
}

/// Throws InvalidArgument unless a field of type string may hold `words`: readers refuse the whole message otherwise.
/// `what` is what errors call them.
inline void require_text(std::string_view what, std::string_view words) {
  if (words.empty())
    throw InvalidArgument(text("An event file got ", what, " that is empty"), "TensorBoard shows it under its name",
                          "Give it a name");
  if (printable(words, 2 * words.size()) != words)
    throw InvalidArgument(text("An event file got ", what, " that is no text"),
                          text(quoted(words), " has control characters, or is no UTF-8"), "Use a name of letters");
}

}  // namespace dist::summary::detail
