// The simplest update of weights.
#pragma once

#include <cstddef>

#include <dist/core/config.hpp>

namespace support {

/// What `reduce_and_apply` does to a weight: a step of gradient descent with the learning rate 1.
struct Descend {
  DIST_HD float operator()(std::size_t, float weight, float slope) const { return weight - slope; }
};

}  // namespace support
