// Work whose order a test sees in its result.
#pragma once

#include <cstddef>

#include <dist/core/config.hpp>

namespace support {

/// x[i] = x[i] * factor + term: in another order it is another number.
template <class T>
struct Apply {
  T* x;
  T factor, term;
  DIST_HD void operator()(std::size_t i) const { x[i] = x[i] * factor + term; }
};

}  // namespace support
