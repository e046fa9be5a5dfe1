#pragma once

#include <string_view>

#include <dist/nn/onednn/api.hpp>
#include <dist/nn/onednn/pooling2d.hpp>

namespace dist::nn::onednn {

struct MaxPooling {
  static constexpr auto algorithm = dnnl::algorithm::pooling_max;
  static constexpr std::string_view forward_name = "the pooling of nn::MaxPool2D";
  static constexpr std::string_view backward_name = "the input gradient of nn::MaxPool2D";
  static constexpr bool has_places = true;
};

/// oneDNN's maximum pooling. Keeps where the maxima were, from `forward` to `input_gradient`.
template <class Geometry, class T>
using MaxPool2D = Pooling2D<Geometry, T, MaxPooling>;

}  // namespace dist::nn::onednn
