#include <dist/nn/onednn/backend.hpp>

#include <concepts>
#include <cstddef>

#include <dist/core/static_shape.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/onednn/layers.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

template <std::size_t Height, std::size_t Width, std::size_t Window, class Padding, std::size_t Groups = 1>
inline constexpr bool uses_products = [] {
  using Geometry = nn::Conv2DGeometry<dist::StaticShape<Height, Width, 4>, 8, Window, 1, Padding, nn::Linear, Groups>;
  using Chosen = nn::onednn::Conv2D<Geometry, float>;
  constexpr bool by_products = std::same_as<Chosen, nn::onednn::Conv2DProducts<Geometry, float>>;
  static_assert(by_products || std::same_as<Chosen, nn::onednn::Conv2DPrimitives<Geometry, float>>);
  return by_products;
}();

}  // namespace

TEST_CASE("matrix products compute images of up to nine pixels, oneDNN's convolution all larger ones") {
  CHECK(uses_products<3, 3, 3, nn::Same>);
  CHECK(uses_products<5, 5, 3, nn::Valid>);  // nine windows
  CHECK_FALSE(uses_products<5, 2, 3, nn::Same>);
  CHECK_FALSE(uses_products<2, 2, 3, nn::Same, 2>);
}

TEST_CASE("a window of one pixel has no padding to save, so only images of one pixel are products") {
  CHECK(uses_products<1, 1, 1, nn::Valid>);
  CHECK_FALSE(uses_products<1, 2, 1, nn::Valid>);
}

TEST_CASE("a window inside the padding has no row to multiply") {
  CHECK(uses_products<2, 2, 3, nn::Pad<1>>);
  CHECK_FALSE(uses_products<1, 1, 2, nn::Pad<2, 0>>);
}
