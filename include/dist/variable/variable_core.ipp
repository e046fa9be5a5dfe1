#pragma once

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/variable/variable_core.hpp>

namespace dist::detail {

DIST_COLD void refuse_shape(std::string_view name, const Shape& shape, const Shape& given,
                            std::string_view suggestion) {
  throw ShapeMismatch(concat("A value does not fit variable '", name, "'"),
                      concat("the value has shape ", to_string(given), ", the variable ", to_string(shape)),
                      suggestion);
}

DIST_COLD void refuse_single_value(std::string_view name, const Shape& shape) {
  throw ShapeMismatch(concat("Variable '", name, "' has no single value"), concat("its shape is ", to_string(shape)),
                      "Use read for variables with several elements");
}

DIST_COLD void refuse_replica(const std::string& name, std::size_t replica, std::size_t replicas,
                              const std::string& strategy) {
  throw InvalidArgument(concat("Variable '", name, "' has no copy for replica ", replica),
                        concat(strategy, ", numbered from 0"), concat("Give a replica number below ", replicas));
}

DIST_COLD void refuse_strategy(bool is_variable, const std::string& name, const std::string& strategy) {
  throw WrongStrategy(
      concat(is_variable ? "Variable '" : "Buffer '", name, "' was used with a strategy that did not make it"),
      concat("the context belongs to ", strategy),
      concat("Make the ", is_variable ? "variable" : "buffer", " with the strategy that runs the replica function"));
}

}  // namespace dist::detail
