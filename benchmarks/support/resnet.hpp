#pragma once

#include <cstddef>

#include <dist/nn.hpp>

#include "training.hpp"

/// A residual network like the one of example 19, for images of 32 x 32 pixels and with one block of 64 filters.
namespace bench {

namespace resnet {

using Normalize = nn::BatchNormalization<>;
template <std::size_t Filters, std::size_t Stride>
using Body = nn::Sequential<nn::Conv2D<Filters, 3, nn::Linear, Stride, nn::Same>, Normalize, nn::ReLU,
                            nn::Conv2D<Filters, 3, nn::Linear, 1, nn::Same>, Normalize>;
template <std::size_t Filters>
using Projection = nn::Sequential<nn::Conv2D<Filters, 1, nn::Linear, 2>, Normalize>;
template <std::size_t Filters>
using Narrower = nn::Sequential<nn::Residual<Body<Filters, 2>, Projection<Filters>>, nn::ReLU>;

}  // namespace resnet

/// 4,913,802 parameters.
using ResNet =
    nn::Sequential<nn::Input<32, 32, 3>, nn::Conv2D<64, 7, nn::Linear, 2, nn::Same>, resnet::Normalize, nn::ReLU,
                   nn::MaxPool2D<3, 2, nn::Same>, nn::Residual<resnet::Body<64, 1>>, nn::ReLU, resnet::Narrower<128>,
                   resnet::Narrower<256>, resnet::Narrower<512>, nn::GlobalAveragePool2D, nn::Dense<10>>;
static_assert(ResNet::parameter_count == 4'913'802, "the networks in peers/ have the same number");

}  // namespace bench
