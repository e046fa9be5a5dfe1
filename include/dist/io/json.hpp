#pragma once

#if !__has_include(<jansson.h>)
#error "<jansson.h> of jansson was not found: install libjansson-dev, and link dist::json (without CMake: -ljansson)"
#endif

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include <jansson.h>

#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>

namespace dist::io {

/// The longest text that `parse_json` reads unless told otherwise. The parser limits how deep it may nest (jansson: 2048
/// levels).
inline constexpr std::size_t json_default_max_bytes = std::size_t{1} << 20;

namespace detail {

struct ReleaseJson {
  void operator()(json_t* json) const noexcept { json_decref(json); }
};

}  // namespace detail

/// A JSON value and all values in it, which live as long as it does.
using Json = std::unique_ptr<json_t, detail::ReleaseJson>;

/// Reads the JSON in `written`. Calls `refuse(why)`, which throws the caller's error, for anything else, for what is longer
/// than `max_bytes` or deeper than the limit, for a number that a 64-bit integer or a double cannot hold, for the character
/// NUL, and for an object with a key twice, of which JSON parsers otherwise keep one at their choice; `why` has the place.
/// The values of a hostile text take up to eighty times its bytes.
[[nodiscard]] inline Json parse_json(std::string_view written, std::size_t max_bytes,
                                     dist::detail::FunctionRef<void(std::string_view)> refuse) {
  if (written.size() > max_bytes) refuse(concat(written.size(), " bytes, at most ", max_bytes, " are read"));
  json_error_t error;
  Json json{json_loadb(written.data(), written.size(), JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error)};
  if (!json) refuse(concat("line ", error.line, ", column ", error.column, ": ", static_cast<const char*>(error.text)));
  return json;
}

/// Reads the JSON in `written`, which is the value of `variable`, such as "TF_CONFIG". Throws InvalidArgument, which names
/// the variable and the place, where the other overload refuses.
[[nodiscard]] inline Json parse_json(std::string_view written, std::string_view variable,
                                     std::size_t max_bytes = json_default_max_bytes) {
  return parse_json(written, max_bytes, [&](std::string_view why) {
    throw InvalidArgument(concat(variable, " is not JSON that can be read"), why,
                          concat("Set ", variable, " to JSON as json.dumps writes it"));
  });
}

[[nodiscard]] inline std::string_view string_in(const json_t* json) noexcept {
  return {json_string_value(json), json_string_length(json)};
}

/// What kind of value it is, with its article.
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

/// The value as JSON in one line.
[[nodiscard]] inline std::string written_json(const json_t* json) {
  struct Free {
    void operator()(char* written) const noexcept { std::free(written); }
  };
  const std::unique_ptr<char, Free> written{json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT)};
  return written ? written.get() : "";
}

}  // namespace dist::io
