#pragma once

#include <type_traits>

#include <dist/nn/onednn/conv2d_primitives.hpp>
#include <dist/nn/onednn/conv2d_products.hpp>

namespace dist::nn::onednn {

/// Convolution: images of few pixels as products of matrices, all others by oneDNN's primitive.
template <class Geometry, class T>
using Conv2D =
    std::conditional_t<is_faster_by_products<Geometry>(), Conv2DProducts<Geometry, T>, Conv2DPrimitives<Geometry, T>>;

}  // namespace dist::nn::onednn
