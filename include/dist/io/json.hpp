#pragma once

#if !__has_include(<jansson.h>)
#error "<jansson.h> of jansson was not found: install libjansson-dev, and link dist::json (without CMake: -ljansson)"
#endif

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include <jansson.h>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>

namespace dist::io {

/// The default limit on the length of a text for `parse_json`. The parser limits the nesting depth (jansson: 2048
/// levels).
inline constexpr std::size_t json_default_max_bytes = std::size_t{1} << 20;

namespace detail {

struct ReleaseJson {
  void operator()(json_t* json) const noexcept { json_decref(json); }
};

}  // namespace detail

/// Owns a JSON value and all values in it.
using Json = std::unique_ptr<json_t, detail::ReleaseJson>;

/// Parses JSON. Calls `refuse(why)`, which must throw, if the text is invalid, longer than `max_bytes` or nested too
/// deeply, or has numbers beyond 64-bit integers and doubles, NUL characters or duplicate keys. `why` includes the
/// position. The values may take eighty times the bytes of a malicious text.
[[nodiscard]] inline Json parse_json(std::string_view written, std::size_t max_bytes,
                                     dist::detail::FunctionRef<void(std::string_view)> refuse) {
  if (written.size() > max_bytes) refuse(concat(written.size(), " bytes, at most ", max_bytes, " are read"));
  json_error_t error;
  Json json{json_loadb(written.data(), written.size(), JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error)};
  if (!json) refuse(concat("line ", error.line, ", column ", error.column, ": ", static_cast<const char*>(error.text)));
  return json;
}

/// Parses the JSON value of the environment variable `variable`, such as "TF_CONFIG". Throws InvalidArgument, with the
/// variable and the position, if it is invalid.
[[nodiscard]] inline Json parse_json(std::string_view written, std::string_view variable,
                                     std::size_t max_bytes = json_default_max_bytes) {
  return parse_json(written, max_bytes, [&](std::string_view why) {
    throw InvalidArgument(concat(variable, " cannot be parsed as JSON"), why,
                          concat("Set ", variable, " to JSON as json.dumps writes it"));
  });
}

/// Returns the bytes of a JSON string.
[[nodiscard]] inline std::string_view string_in(const json_t* json) noexcept {
  return {json_string_value(json), json_string_length(json)};
}

/// Returns the kind of the value, with an article.
[[nodiscard]] inline std::string_view kind_of(const json_t* json) noexcept {
  switch (json_typeof(json)) {
    case JSON_OBJECT:
      return "an object";
    case JSON_ARRAY:
      return "an array";
    case JSON_STRING:
      return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
      return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
      return "a boolean";
    case JSON_NULL:
      break;
  }
  return "null";
}

/// Returns the value as JSON on one line.
[[nodiscard]] inline std::string written_json(const json_t* json) {
  struct Free {
    void operator()(char* written) const noexcept { std::free(written); }
  };
  const std::unique_ptr<char, Free> written{json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT)};
  return written ? written.get() : "";
}

}  // namespace dist::io
