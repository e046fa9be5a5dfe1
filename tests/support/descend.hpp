#pragma once

#include <cstddef>

#include <dist/core/config.hpp>

namespace support {

/// An update for `reduce_and_apply`: gradient descent with learning rate 1.
struct Descend {
  DIST_HD float operator()(std::size_t, float weight, float slope) const { return weight - slope; }
};

}  // namespace support
