#pragma once

#include <dist/core/place.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn {

/// What a network computed for a batch, and the place where the loss writes d loss / d values before
/// `backward`. Both have shape [rows, …] and belong to the network: the next `forward` of the same replica
/// overwrites them.
template <class T, dist::Place Where = HostMemory>
struct Outputs {
  TensorView<const T, Where> values;
  TensorView<T, Where> gradient;
};

}  // namespace dist::nn
