// What an optimizer needs of a network, on any strategy: one layer, and gradients that a queue makes.
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

/// A kernel and a bias, with padding behind each.
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

/// Eighths, so that squares are added up to the same sum in any order.
struct Slope {
  float* to;
  std::size_t number;
  DIST_HD void operator()(std::size_t i) const {
    to[i] = static_cast<float>((i * 7 + number * 5) % 23) * 0.125F - 1.0F;
  }
};

}  // namespace support
