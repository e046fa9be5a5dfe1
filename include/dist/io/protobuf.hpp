/// Messages of Protocol Buffers, written field by field. The only header that includes protozero's.
#pragma once

#if !__has_include(<protozero/pbf_writer.hpp>)
#error "<protozero/pbf_writer.hpp> of protozero was not found: install libprotozero-dev, and link dist::summary"
#endif

#include <protozero/pbf_writer.hpp>

#include <string>

namespace dist::io::detail {

using Protobuf = protozero::pbf_writer;

/// The bytes of the message that `write` gives its fields.
template <class Write>
[[nodiscard]] std::string protobuf(Write write) {
  std::string bytes;
  Protobuf message{bytes};
  write(message);
  return bytes;
}

}  // namespace dist::io::detail
