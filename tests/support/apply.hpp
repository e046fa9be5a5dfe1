// Work whose result depends on its order.
#pragma once

#include <cstddef>

#include <dist/core/config.hpp>

namespace support {

/// x[i] = x[i] * factor + term: other orders give other numbers.
template <class T>
struct Apply {
  T* x;
  T factor, term;
  DIST_HD void operator()(std::size_t i) const { x[i] = x[i] * factor + term; }
};

}  // namespace support
