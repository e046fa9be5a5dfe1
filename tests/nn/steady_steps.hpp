// Steps of a network that must not allocate. Replaces the allocation functions of the test program.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"
#include "support/allocations.hpp"

namespace dist_test {

/// Checks that after a step of four rows, which allocates, steps of these numbers of rows, at most four, do not.
template <class Net>
void check_steady_steps(std::initializer_list<std::size_t> row_counts) {
  dist::nn::Workspace<Net, dist::nn::Reference, float> workspace;
  const auto parameters = converted<float>(numbers(Net::padded_count, 1));
  std::vector<float> gradients(Net::padded_count);
  const dist::Tensor<float> x{Net::InputShape::shape().stacked(4)};
  const auto step = [&](std::size_t rows) {
    const std::size_t before = allocations;
    const auto y = workspace.forward(parameters, x.view().rows(0, rows));
    for (float& element : y.gradient.elements()) element = 1;
    workspace.backward(parameters, gradients);
    return allocations - before;
  };
  CHECK(step(4) > 0);
  for (const std::size_t rows : row_counts) {
    CAPTURE(rows);
    CHECK(step(rows) == 0);
  }
}

}  // namespace dist_test
