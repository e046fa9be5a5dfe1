#pragma once

#include <string_view>

#include <dist/nn/onednn/api.hpp>
#include <dist/nn/onednn/pooling2d.hpp>

namespace dist::nn::onednn {

struct AveragePooling {
  static constexpr auto algorithm = dnnl::algorithm::pooling_avg_exclude_padding;
  static constexpr std::string_view forward_name = "the pooling of nn::AveragePool2D";
  static constexpr std::string_view backward_name = "the input gradient of nn::AveragePool2D";
  static constexpr bool has_places = false;
};

/// oneDNN's average pooling, of elements inside the image.
template <class Geometry, class T>
using AveragePool2D = Pooling2D<Geometry, T, AveragePooling>;

}  // namespace dist::nn::onednn
