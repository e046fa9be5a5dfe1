#pragma once

#include <cstddef>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/cluster/whole_number.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// Where resolvers look up environment variables: those of the process, or given ones instead.
class Environment {
 public:
  using Variables = std::map<std::string, std::string>;

  /// The process's own, looked up at each call. Nothing may change them at the same time (getenv).
  Environment() = default;
  explicit Environment(Variables variables) : given_(std::move(variables)) {}

  [[nodiscard]] std::optional<std::string> get(const std::string& name) const {
    if (given_) {
      const auto found = given_->find(name);
      return found == given_->end() ? std::nullopt : std::optional(found->second);
    }
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }

  /// A count. Throws InvalidArgument when the variable is there and no whole number.
  [[nodiscard]] std::optional<std::size_t> number(const std::string& name) const {
    const std::optional<std::string> value = get(name);
    if (!value) return std::nullopt;
    const std::optional<std::size_t> count = detail::whole_number(*value);
    if (!count)
      throw InvalidArgument(text("The environment variable ", name, " has a value that cannot be used"),
                            text(quoted(*value), " is not a whole number"),
                            text("Set it to a number, or unset ", name));
    return count;
  }

  /// Throws InvalidArgument when the variable is missing; `why` and `suggestion` end its message.
  [[nodiscard]] std::string require(const std::string& name, std::string_view why, std::string_view suggestion) const {
    std::optional<std::string> value = get(name);
    if (!value) throw InvalidArgument(text("The environment variable ", name, " is not set"), why, suggestion);
    return *std::move(value);
  }
  /// The same for a count.
  [[nodiscard]] std::size_t require_number(const std::string& name, std::string_view why,
                                           std::string_view suggestion) const {
    static_cast<void>(require(name, why, suggestion));
    return *number(name);
  }

 private:
  std::optional<Variables> given_;
};

}  // namespace dist
