#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/config.hpp>

namespace dist {

/// Where resolvers look up environment variables: those of the process, or given ones instead.
class Environment {
 public:
  using Variables = std::map<std::string, std::string>;

  /// The process's own, looked up at each call. Nothing may change them at the same time (getenv).
  Environment() = default;
  explicit Environment(Variables variables) : given_(std::move(variables)) {}

  [[nodiscard]] std::optional<std::string> get(const std::string& name) const;

  /// A count. Throws InvalidArgument when the variable is there and no whole number.
  [[nodiscard]] std::optional<std::size_t> number(const std::string& name) const;

  /// Throws InvalidArgument when the variable is missing; `why` and `suggestion` end its message.
  [[nodiscard]] std::string require(const std::string& name, std::string_view why, std::string_view suggestion) const;
  /// The same for a count.
  [[nodiscard]] std::size_t require_number(const std::string& name, std::string_view why,
                                           std::string_view suggestion) const;

 private:
  std::optional<Variables> given_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/environment.ipp>
#endif
