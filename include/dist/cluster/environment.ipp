#pragma once

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/cluster/address.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/core/error.hpp>

namespace dist {

DIST_INLINE std::optional<std::string> Environment::get(const std::string& name) const {
  if (given_) {
    const auto found = given_->find(name);
    return found == given_->end() ? std::nullopt : std::optional(found->second);
  }
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

DIST_INLINE std::optional<std::size_t> Environment::number(const std::string& name) const {
  const std::optional<std::string> value = get(name);
  if (!value) return std::nullopt;
  const std::optional<std::size_t> count = detail::whole_number(*value);
  if (!count)
    throw InvalidArgument(concat("The environment variable ", name, " has a value that cannot be used"),
                          concat(quoted(*value), " is not a whole number"),
                          concat("Set it to a number, or unset ", name));
  return count;
}

DIST_INLINE std::string Environment::require(const std::string& name, std::string_view why,
                                             std::string_view suggestion) const {
  std::optional<std::string> value = get(name);
  if (!value) throw InvalidArgument(concat("The environment variable ", name, " is not set"), why, suggestion);
  return *std::move(value);
}

DIST_INLINE std::size_t Environment::require_number(const std::string& name, std::string_view why,
                                                    std::string_view suggestion) const {
  static_cast<void>(require(name, why, suggestion));
  return *number(name);
}

}  // namespace dist
