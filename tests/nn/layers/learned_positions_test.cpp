#include <dist/nn/layers/learned_positions.hpp>

#include <cstddef>
#include <vector>

#include <dist/nn/initializer.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("LearnedPositions adds a table to each row, whose gradient is the sum over the rows") {
  using In = dist::StaticShape<2, 3>;
  using Layer = nn::LearnedPositions<>;
  dist_test::BoundLayer<Layer, In> layer;
  CHECK(layer.forward({1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6}, {{10, 20, 30, 40, 50, 60}}) ==
        List{11, 22, 33, 44, 55, 66, 9, 18, 27, 36, 45, 54});
  const List slopes{1, 2, 3, 4, 5, 6, 0.5, 0.25, 0, -1, -2, -3};
  CHECK(layer.backward(slopes) == slopes);
  CHECK(layer.gradients == std::vector<List>{{1.5, 2.25, 3, 3, 3, 3}});
}

TEST_CASE("the table of LearnedPositions has the name of KerasHub and starts as the initialiser says") {
  using Net = nn::Sequential<nn::Input<4, 3>, nn::LearnedPositions<>, nn::LearnedPositions<nn::Zeros>>;
  CHECK(Net::parameters[0].name() == "position_embedding/embeddings");
  CHECK(Net::parameters[0].shape == dist::Shape{4, 3});
  List all(Net::padded_count, 7);
  Net::initialize(dist::TensorView<double>{all.data(), dist::Shape{all.size()}}, 1);
  List expected(12);
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), dist::Shape{4, 3}}, {4, 3},
                          dist::RandomStream{1, std::uint64_t{0x77656967} << 32});
  CHECK(List(all.begin(), all.begin() + 12) == expected);
  CHECK(List(all.begin() + 16, all.begin() + 28) == List(12));
}

TEST_CASE("gradients of LearnedPositions agree with central differences, and other back ends with the plain loops") {
  using Net = nn::Sequential<nn::Input<3, 5>, nn::Dense<4>, nn::LearnedPositions<>, nn::Dense<2>>;
  dist_test::check_gradients<Net, nn::Reference>(2);
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0});
}
