// A custom reduction, as in the comment of core/reduce_op.hpp.
#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/reduce_op.hpp>

namespace support {

struct LargestMagnitude {
  static constexpr std::string_view name = "largest_magnitude";
  template <dist::Reducible T>
  static constexpr T identity = T{0};
  template <dist::Reducible T>
  constexpr T operator()(T a, T b) const {
    return b * b > a * a ? b : a;
  }
  template <dist::Reducible T>
  static constexpr T finish(T combined, std::size_t) {
    return combined;
  }
};

}  // namespace support
