#include <dist/nn/reference/embedding.hpp>

#include <cstddef>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("Embedding: the gradient of the table agrees with central differences, and oneDNN with the plain loops") {
  using Net = nn::Sequential<nn::Input<3>, nn::Embedding<5, 2>, nn::Flatten, nn::Dense<2>>;
  const std::vector<double> ids{0, 4, 4, 2, 1, 4};
  auto parameters = dist_test::numbers(Net::padded_count, 1);
  nn::Workspace<Net, nn::Reference, double> workspace;
  const auto analytic = dist_test::pass(workspace, parameters, ids);
  for (std::size_t i = 0; i < 10; ++i) {
    constexpr double step = 1e-5;
    const double before = parameters[i];
    parameters[i] = before + step;
    const double above = dist_test::pass(workspace, parameters, ids).loss;
    parameters[i] = before - step;
    const double below = dist_test::pass(workspace, parameters, ids).loss;
    parameters[i] = before;
    CHECK(analytic.gradients[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-7));
  }
  nn::Workspace<Net, nn::OneDnn, float> by_onednn;
  const auto mine = dist_test::pass(by_onednn, parameters, ids);
  CHECK(dist_test::difference(mine.outputs, analytic.outputs) < 1e-5);
  CHECK(dist_test::difference(mine.gradients, analytic.gradients) < 1e-5);
}
