#pragma once

#include <concepts>

#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn {

/// What a network computed for a batch, and the place where the loss writes d loss / d values before
/// `backward`. Both have shape [rows, …] and belong to the network: the next `forward` of the same replica
/// overwrites them.
template <class T, dist::MemorySpace Where = HostMemory>
struct Outputs {
  TensorView<const T, Where> values;
  TensorView<T, Where> gradient;
};

/// What a network's output is computed for. Most layers compute the same in both modes.
///
/// To learn from it: layers take statistics of the batch, and update those that they keep.
struct Training {};
/// To use it: layers take the statistics that they keep, and change nothing.
struct Inference {};

inline constexpr Training training{};
inline constexpr Inference inference{};

template <class M>
concept ForwardMode = std::same_as<M, Training> || std::same_as<M, Inference>;

}  // namespace dist::nn
