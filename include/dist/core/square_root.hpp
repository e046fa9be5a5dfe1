#pragma once

#include <dist/core/config.hpp>

#if !defined(__GNUC__)
#include <cmath>
#endif

namespace dist::detail {

/// std::sqrt without `<cmath>`, whose special functions would be a tenth of the compile time of `<dist/dist.hpp>`.
[[nodiscard]] DIST_HD inline double square_root(double x) noexcept {
#if defined(__CUDA_ARCH__)
  return ::sqrt(x);  // nvcc declares it
#elif defined(__GNUC__)
  return __builtin_sqrt(x);
#else
  return std::sqrt(x);
#endif
}

}  // namespace dist::detail
