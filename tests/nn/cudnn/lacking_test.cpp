// What the back end on GPUs lacks is refused by the layer that asks for it. The sentences are tested on the host.
#include <dist/nn/cudnn/backend.cuh>

#include <cstddef>

#include <dist/core/static_shape.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/layer_normalization.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

template <class Backend, class Layer, class In = dist::StaticShape<4, 4, 2>>
constexpr bool computes = nn::detail::computes<Backend, typename Layer::template On<In>::template Asked<float>>;

template <class Layer, class In = dist::StaticShape<4, 4, 2>>
constexpr bool only_on_host =
    computes<nn::Reference, Layer, In>&& computes<nn::OneDnn, Layer, In> && !computes<nn::CuDnn, Layer, In>;

}  // namespace

TEST_CASE("layers that compute on the host only") {
  CHECK(only_on_host<nn::Softmax>);
  CHECK(only_on_host<nn::Dropout<50>>);
  CHECK(only_on_host<nn::LayerNormalization<>>);
  CHECK(only_on_host<nn::GroupNormalization<2>>);
  CHECK(only_on_host<nn::Embedding<3, 2>>);
  CHECK(only_on_host<nn::MultiHeadAttention<2, 3>, dist::StaticShape<4, 2>>);
}
