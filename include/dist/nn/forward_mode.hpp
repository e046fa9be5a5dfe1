#pragma once

#include <concepts>

namespace dist::nn {

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
