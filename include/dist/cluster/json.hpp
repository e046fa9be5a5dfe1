#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <dist/core/error.hpp>

namespace dist::detail {

/// The longest text and the deepest nesting that `parse_json` reads.
inline constexpr std::size_t json_max_bytes = std::size_t{1} << 20;
inline constexpr std::size_t json_max_depth = 32;

/// Reads the JSON in `written`, which came from `source`, such as "TF_CONFIG". Throws InvalidArgument, which names the
/// source and the place, for anything else, for what is longer or deeper than the limits, and for an object with a key
/// twice, of which JSON parsers otherwise keep one at their choice.
[[nodiscard]] inline nlohmann::json parse_json(std::string_view written, std::string_view source) {
  const std::string suggestion = text("Set ", source, " to JSON as json.dumps writes it");
  const auto refuse = [&](std::string_view why) {
    throw InvalidArgument(text(source, " is not JSON that can be read"), why, suggestion);
  };
  if (written.size() > json_max_bytes) refuse(text(written.size(), " bytes, at most ", json_max_bytes, " are read"));

  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of the objects that the parser is in
  const auto watch = [&](int depth, Event event, const nlohmann::json& parsed) {
    if ((event == Event::object_start || event == Event::array_start) &&
        static_cast<std::size_t>(depth) >= json_max_depth)
      refuse(text("more than ", json_max_depth, " brackets are open at once"));
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second)
      refuse(text("the key '", parsed.get<std::string>(), "' comes twice in one object"));
    return true;
  };
  try {
    return nlohmann::json::parse(written, watch);
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...": the place and what follows.
    std::string_view what = error.what();
    if (const std::size_t name = what.find("] "); name != std::string_view::npos) what.remove_prefix(name + 2);
    constexpr std::string_view words = "parse error at ";
    if (what.starts_with(words)) what.remove_prefix(words.size());
    refuse(what);
  }
  return {};
}

}  // namespace dist::detail
