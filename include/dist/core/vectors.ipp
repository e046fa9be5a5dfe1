#pragma once

#include <cstdlib>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/vectors.hpp>

namespace dist::detail {

DIST_INLINE std::size_t max_vector_bytes() {
  static const std::size_t bytes = [] {
    const char* const chosen = std::getenv("DIST_MAX_ISA");
    if (chosen == nullptr || *chosen == '\0') return ~std::size_t{0};
    const std::string_view name = chosen;
    if (name == "sse41") return std::size_t{16};
    if (name == "avx2") return std::size_t{32};
    if (name == "avx512") return std::size_t{64};
    throw InvalidArgument("DIST_MAX_ISA is not the name of an instruction set", concat("it is ", quoted(name)),
                          "Set it to sse41, avx2 or avx512, or unset it");
  }();
  return bytes;
}

DIST_INLINE void refuse_vectors(std::size_t bytes) {
  throw InvalidArgument(
      concat("DIST_MAX_ISA allows vectors of ", max_vector_bytes(), " bytes"),
      concat("this program is compiled for vectors of ", bytes, " bytes"),
      "Compile it for older processors, such as with -march=x86-64-v2, and with -DDIST_DISPATCH_VECTORS "
      "to use wider vectors where they are allowed");
}

}  // namespace dist::detail
