#pragma once

#include <array>
#include <cstddef>

#include <dist/core/algorithms.hpp>
#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn::detail {

/// The trained factor gamma, initially 1, and summand beta, initially 0, of bound layers that normalise `Channels`
/// channels.
template <std::size_t Channels>
struct ScaleAndShift {
  static constexpr std::array parameters{ParameterSpec{"gamma", Shape{Channels}},
                                         ParameterSpec{"beta", Shape{Channels}}};

  template <std::size_t Which, class T>
  static void initialize(TensorView<T> view, RandomStream) {
    std::fill_n(view.data(), view.size(), Which == 0 ? T{1} : T{0});
  }
};

}  // namespace dist::nn::detail
