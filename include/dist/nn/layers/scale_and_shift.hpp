#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn::detail {

/// What layers learn that normalise `Channels` channels: gamma, by which each is multiplied and which starts at one, and
/// beta, which is added to it and starts at zero. A base of such layers in their places.
template <std::size_t Channels>
struct ScaleAndShift {
  static constexpr std::array parameters{ParameterSpec{"gamma", Shape{Channels}},
                                         ParameterSpec{"beta", Shape{Channels}}};

  template <std::size_t Which, class T>
  static void initialize(TensorView<T> view, RandomStream) {
    std::ranges::fill(view.elements(), Which == 0 ? T{1} : T{0});
  }
};

}  // namespace dist::nn::detail
