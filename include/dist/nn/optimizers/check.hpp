#pragma once

#include <string_view>

#include <dist/core/error.hpp>

namespace dist::nn::detail {

/// Throws InvalidArgument unless `value` >= 0; "optimizer.field" is named.
inline void require_not_negative(std::string_view optimizer, std::string_view field, float value) {
  if (!(value >= 0))
    throw InvalidArgument(text(optimizer, ".", field, " is out of range"), text("it is ", value),
                          "Give a number of 0 or more");
}

/// Throws InvalidArgument unless 0 <= `value` < 1.
inline void require_decay(std::string_view optimizer, std::string_view field, float value) {
  if (!(value >= 0 && value < 1))
    throw InvalidArgument(text(optimizer, ".", field, " is out of range"), text("it is ", value),
                          "Give a number from 0 to below 1");
}

}  // namespace dist::nn::detail
