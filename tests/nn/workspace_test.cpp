#include <dist/nn/workspace.hpp>

#include <cstddef>
#include <vector>

#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/flatten.hpp>
#include <dist/nn/layers/max_pool2d.hpp>
#include <dist/nn/layers/relu.hpp>
#include <dist/nn/layers/reshape.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"
#include "support/allocations.hpp"

namespace nn = dist::nn;
using dist_test::numbers;

namespace {

using Small = nn::Sequential<nn::Input<7, 6, 2>, nn::Conv2D<3, 3, nn::Relu>, nn::MaxPool2D<2>, nn::Flatten,
                             nn::Dense<5, nn::Relu>, nn::Dense<4>>;
using Deep = nn::Sequential<nn::Input<36>, nn::Reshape<6, 6, 1>, nn::Conv2D<4, 3, nn::Linear, 1, nn::Same>, nn::ReLU,
                            nn::Conv2D<3, 2, nn::Relu, 2>, nn::Flatten, nn::ReLU, nn::Dense<3>, nn::Reshape<3, 1>>;
using StartsWithoutParameters =
    nn::Sequential<nn::Input<8, 8, 1>, nn::MaxPool2D<2>, nn::ReLU, nn::Flatten, nn::Dense<6, nn::Relu>, nn::Dense<2>>;

}  // namespace

TEST_CASE("gradients of whole networks agree with central differences") {
  for (const std::size_t rows : {std::size_t{1}, std::size_t{3}}) {
    CAPTURE(rows);
    dist_test::check_gradients<Small, nn::Reference>(rows);
    dist_test::check_gradients<Deep, nn::Reference>(rows);
    dist_test::check_gradients<StartsWithoutParameters, nn::Reference>(rows);
  }
}

TEST_CASE("a batch without rows has no output and zero gradients") {
  nn::Workspace<Small, nn::Reference, double> workspace;
  const auto parameters = numbers(Small::padded_count, 1);
  for (int time = 0; time < 2; ++time) {
    const auto empty = dist_test::pass(workspace, parameters, {});
    CHECK(empty.outputs.empty());
    CHECK(empty.gradients == std::vector<double>(Small::parameter_count, 0.0));
    // The same workspace goes on with a full batch, and comes back.
    CHECK(dist_test::pass(workspace, parameters, numbers(2 * Small::InputShape::elements, 2)).outputs.size() == 8);
  }
}

TEST_CASE("rows do not influence each other, and memory is used again for smaller batches") {
  nn::Workspace<Small, nn::Reference, double> workspace;
  const auto parameters = numbers(Small::padded_count, 1);
  const auto three = numbers(3 * Small::InputShape::elements, 2);
  const auto together = dist_test::pass(workspace, parameters, three);
  std::vector<double> gradient_sum(Small::parameter_count, 0.0);
  for (std::size_t row = 0; row < 3; ++row) {
    const auto first = three.begin() + static_cast<std::ptrdiff_t>(row * Small::InputShape::elements);
    const std::vector<double> image(first, first + Small::InputShape::elements);
    const auto weights = parameters;
    const dist::TensorView<const double> x{image.data(), dist::Shape{1, 7, 6, 2}};
    const auto y = workspace.forward(weights, x);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(y.values[i] == doctest::Approx(together.outputs[row * 4 + i]).epsilon(1e-14));
      y.gradient[i] = numbers(12, 3)[row * 4 + i] + y.values[i];
    }
    std::vector<double> gradients(Small::padded_count);
    workspace.backward(weights, gradients);
    std::size_t index = 0;
    for (const nn::Parameter& parameter : Small::parameters)
      for (std::size_t i = 0; i < parameter.shape.elements(); ++i)
        gradient_sum[index++] += gradients[parameter.offset + i];
  }
  CHECK(dist_test::difference(gradient_sum, together.gradients) < 1e-13);
}

TEST_CASE("a steady step allocates nothing, also at smaller batches") {
  nn::Workspace<Small, nn::Reference, float> workspace;
  const auto parameters = dist_test::converted<float>(numbers(Small::padded_count, 1));
  std::vector<float> gradients(Small::padded_count);
  const dist::Tensor<float> x{dist::Shape{4, 7, 6, 2}};
  const auto step = [&](std::size_t rows) {
    const std::size_t before = allocations;
    const auto y = workspace.forward(parameters, x.view().rows(0, rows));
    for (float& element : y.gradient.elements()) element = 1;
    workspace.backward(parameters, gradients);
    return allocations - before;
  };
  CHECK(step(4) > 0);
  for (const std::size_t rows : std::initializer_list<std::size_t>{4, 2, 0, 4, 3}) CHECK(step(rows) == 0);
}
