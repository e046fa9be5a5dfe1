#pragma once

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks::detail {

/// The path that `pattern` means: "{epoch}" and "{batch}" are these numbers, "{val_loss}" and the like values of the logs,
/// written as Python's format does it for "{epoch:02d}" and "{val_loss:.2f}"; "{{" and "}}" are braces. Throws
/// InvalidArgument for other placeholders.
[[nodiscard]] inline std::string format_path(std::string_view pattern, std::size_t epoch,
                                             std::optional<std::size_t> batch, const Logs& logs) {
  const auto refuse = [&](std::string_view placeholder, std::string_view why) {
    throw InvalidArgument(
        text("The path ", quoted(pattern), " of ModelCheckpoint cannot be formatted"),
        text("{", placeholder, "}: ", why),
        "Use {epoch}, {batch} where it saves after batches, and names of the logs, with a format such as "
        "{epoch:02d} or {val_loss:.2f}");
  };
  /// The digits of "02d" before its letter.
  const auto number_in = [](std::string_view digits) -> std::optional<int> {
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || end != digits.data() + digits.size() || number < 0 || number > 99) return std::nullopt;
    return number;
  };
  std::string path;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char letter = pattern[at];
    if (letter != '{' && letter != '}') {
      path += letter;
      continue;
    }
    if (at + 1 < pattern.size() && pattern[at + 1] == letter) {
      path += letter;
      ++at;
      continue;
    }
    const std::size_t end = pattern.find('}', at);
    if (letter == '}' || end == std::string_view::npos) refuse(pattern.substr(at), "braces do not match");
    const std::string_view placeholder = pattern.substr(at + 1, end - at - 1);
    at = end;
    const std::string_view name = placeholder.substr(0, placeholder.find(':'));
    const std::string_view format =
        name.size() == placeholder.size() ? std::string_view{} : placeholder.substr(name.size() + 1);
    char shown[400];
    if (name == "epoch" || (name == "batch" && batch)) {
      const std::optional<int> width = format.empty() ? 0
                                       : format.back() == 'd'
                                           ? number_in(format.size() == 1 ? "0" : format.substr(0, format.size() - 1))
                                           : std::nullopt;
      if (!width) refuse(placeholder, "an integer has a format such as 02d");
      std::snprintf(shown, sizeof shown, format.starts_with('0') ? "%0*zu" : "%*zu", *width,
                    name == "epoch" ? epoch : *batch);
    } else {
      const double* const value = logs.find(name);
      if (value == nullptr) refuse(placeholder, text("the logs have ", logs.names()));
      const bool is_fixed = format.size() >= 3 && format.front() == '.' && format.back() == 'f';
      const std::optional<int> precision = format.empty() ? std::optional{-1}
                                           : is_fixed     ? number_in(format.substr(1, format.size() - 2))
                                                          : std::nullopt;
      if (!precision) refuse(placeholder, "a number has a format such as .2f");
      if (*precision < 0)
        *std::to_chars(shown, shown + sizeof shown - 1, *value).ptr = '\0';
      else
        std::snprintf(shown, sizeof shown, "%.*f", *precision, *value);
    }
    path += shown;
  }
  return path;
}

}  // namespace dist::nn::callbacks::detail
