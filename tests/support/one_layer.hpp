// A minimal network for optimizers, on any strategy: one layer, with gradients computed in a queue.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/nn/parameter.hpp>

namespace support {

/// A kernel and a bias, each followed by padding.
template <class S>
struct OneLayer {
  static constexpr std::array<dist::nn::Parameter, 2> parameter_list{
      dist::nn::Parameter{"dense", 0, "kernel", dist::Shape{13, 7}, 0},
      dist::nn::Parameter{"dense", 0, "bias", dist::Shape{13}, 96},
  };
  static constexpr std::size_t size = 112;

  explicit OneLayer(S& strategy)
      : weights(strategy.template variable<float>({size}, 0.5F, "weights")),
        slopes(strategy.template buffer<float>({size}, "slopes")) {}

  auto& parameters() { return weights; }
  auto& gradients() { return slopes; }
  static std::span<const dist::nn::Parameter> layout() { return parameter_list; }

  decltype(std::declval<S&>().template variable<float>(dist::Shape{}, 0.0F, std::string{})) weights;
  decltype(std::declval<S&>().template buffer<float>(dist::Shape{}, std::string{})) slopes;
};

/// Multiples of 1/8, so that sums of squares are exact in any order.
struct Slope {
  float* to;
  std::size_t number;
  DIST_HD void operator()(std::size_t i) const {
    to[i] = static_cast<float>((i * 7 + number * 5) % 23) * 0.125F - 1.0F;
  }
};

}  // namespace support
