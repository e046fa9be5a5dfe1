#include <dist/nn/layers/embedding.hpp>

#include <cmath>
#include <type_traits>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/static_shape.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;
using In = dist::StaticShape<3>;

TEST_CASE("Embedding returns rows of its table, and adds up the gradients of repeated ids") {
  using Layer = nn::Embedding<4, 2>;
  CHECK(std::is_same_v<Layer::On<In>::Output, dist::StaticShape<3, 2>>);
  CHECK(Layer::On<In>::name == "embedding");
  CHECK(Layer::On<In>::parameters[0].name == "embeddings");
  dist_test::BoundLayer<Layer, In> layer;
  CHECK(layer.forward({2, 0, 2}, {{1, 2, 3, 4, 5, 6, 7, 8}}) == List{5, 6, 1, 2, 5, 6});
  CHECK(layer.backward({1, 2, 3, 4, 5, 6}) == List{0, 0, 0});
  CHECK(layer.gradients[0] == List{3, 4, 0, 0, 6, 8, 0, 0});
}

TEST_CASE("Embedding reports the first id out of range") {
  dist_test::BoundLayer<nn::Embedding<4, 2>, In> layer;
  const std::vector<List> table{List(8, 1.0)};
  CHECK_THROWS_WITH_AS(layer.forward({0, 4, 0}, table),
                       doctest::Contains("element 1 of the batch is 4, ids are 0 to 3"), dist::InvalidArgument);
  CHECK_THROWS_AS(layer.forward({-1, 0, 0}, table), dist::InvalidArgument);
  CHECK_THROWS_AS(layer.forward({0, 0, std::nan("")}, table), dist::InvalidArgument);
}

TEST_CASE("the table of Embedding is initially uniform in [-0.05, 0.05), as in Keras") {
  List table(2000);
  nn::Embedding<1000, 2>::On<In>::initialize<0>(dist::TensorView<double>{table.data(), dist::Shape{1000, 2}},
                                                dist::RandomStream{3});
  double largest = 0;
  for (const double value : table) largest = std::fmax(largest, std::abs(value));
  CHECK(largest <= 0.05);
  CHECK(largest > 0.0495);
}
