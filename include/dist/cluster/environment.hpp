#pragma once

#include <cstddef>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/cluster/address.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// The process's environment variables, or a given map.
class Environment {
 public:
  /// Values by variable.
  using Variables = std::map<std::string, std::string>;

  /// Reads the variables at each call. They must not change concurrently (getenv).
  Environment() = default;
  /// Reads these variables instead of the process's.
  explicit Environment(Variables variables) : given_(std::move(variables)) {}

  /// Returns the value of a variable; nothing if it is not set.
  [[nodiscard]] std::optional<std::string> get(const std::string& name) const {
    if (given_) {
      const auto found = given_->find(name);
      return found == given_->end() ? std::nullopt : std::optional(found->second);
    }
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }

  /// Throws InvalidArgument if the variable is set to anything but a whole number.
  [[nodiscard]] std::optional<std::size_t> number(const std::string& name) const {
    const std::optional<std::string> value = get(name);
    if (!value) return std::nullopt;
    const std::optional<std::size_t> count = detail::whole_number(*value);
    if (!count)
      throw InvalidArgument(concat("The environment variable ", name, " has a value that cannot be used"),
                            concat(quoted(*value), " is not a whole number"),
                            concat("Set it to a number, or unset ", name));
    return count;
  }

  /// Throws InvalidArgument if the variable is not set; `why` and `suggestion` end the message.
  [[nodiscard]] std::string require(const std::string& name, std::string_view why, std::string_view suggestion) const {
    std::optional<std::string> value = get(name);
    if (!value) throw InvalidArgument(concat("The environment variable ", name, " is not set"), why, suggestion);
    return *std::move(value);
  }
  /// Throws InvalidArgument if the variable is not set to a whole number.
  [[nodiscard]] std::size_t require_number(const std::string& name, std::string_view why,
                                           std::string_view suggestion) const {
    static_cast<void>(require(name, why, suggestion));
    return *number(name);
  }

 private:
  std::optional<Variables> given_;
};

}  // namespace dist
