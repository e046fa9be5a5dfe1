#include <dist/nn/layers/bias.hpp>

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

TEST_CASE("Bias adds a vector along the last axis, whose gradient is the sum over all other axes") {
  const List x{1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6};
  const List slopes{1, 2, 3, 4, 5, 6, 0.5, 0.25, 0, -1, -2, -3};
  dist_test::BoundLayer<nn::Bias<>, dist::StaticShape<2, 3>> of_sequences;
  CHECK(of_sequences.forward(x, {{10, 20, 30}}) == List{11, 22, 33, 14, 25, 36, 9, 18, 27, 6, 15, 24});
  CHECK(of_sequences.backward(slopes) == slopes);
  CHECK(of_sequences.gradients == std::vector<List>{{4.5, 5.25, 6}});

  dist_test::BoundLayer<nn::Bias<>, dist::StaticShape<6>> of_vectors;
  CHECK(of_vectors.forward(x, {{10, 20, 30, 40, 50, 60}}) == List{11, 22, 33, 44, 55, 66, 9, 18, 27, 36, 45, 54});
  CHECK(of_vectors.backward(slopes) == slopes);
  CHECK(of_vectors.gradients == std::vector<List>{{1.5, 2.25, 3, 3, 3, 3}});
}

TEST_CASE("the vector of Bias starts as the initialiser says") {
  using Net = nn::Sequential<nn::Input<2, 4>, nn::Bias<>, nn::Bias<nn::GlorotUniform>>;
  CHECK(Net::parameters[0].name() == "bias/bias");
  CHECK(Net::parameters[0].shape == dist::Shape{4});
  List all(Net::padded_count, 7);
  Net::initialize(dist::TensorView<double>{all.data(), dist::Shape{all.size()}}, 1);
  CHECK(List(all.begin(), all.begin() + 4) == List(4));
  List expected(4);
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), dist::Shape{4}}, {4, 4},
                          dist::RandomStream{1, (std::uint64_t{0x77656967} << 32) + 1});
  const auto second = all.begin() + static_cast<std::ptrdiff_t>(Net::parameters[1].offset);
  CHECK(List(second, second + 4) == expected);
}

TEST_CASE("gradients of Bias agree with central differences, and other back ends with the plain loops") {
  using Net = nn::Sequential<nn::Input<3, 5>, nn::Dense<4>, nn::Bias<>, nn::Dense<2>>;
  dist_test::check_gradients<Net, nn::Reference>(2);
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0});
}
