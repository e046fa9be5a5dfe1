/// Writer for Protocol Buffers messages, field by field. The only header that includes protozero's.
#pragma once

#if !__has_include(<protozero/pbf_writer.hpp>)
#error "<protozero/pbf_writer.hpp> of protozero was not found: install libprotozero-dev, and link dist::summary"
#endif

#include <protozero/pbf_writer.hpp>

#include <string>

#include <dist/core/functions.hpp>

namespace dist::io::detail {

using Protobuf = protozero::pbf_writer;

/// Returns the bytes of a message whose fields `write` adds.
[[nodiscard]] inline std::string protobuf(dist::detail::FunctionRef<void(Protobuf&)> write) {
  std::string bytes;
  Protobuf message{bytes};
  write(message);
  return bytes;
}

}  // namespace dist::io::detail
