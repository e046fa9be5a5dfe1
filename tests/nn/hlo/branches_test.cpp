#include <dist/nn/hlo/branches.hpp>

#include <doctest/doctest.h>

#include <dist/nn/hlo/normalization.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

#include "nn/hlo/check_lowering.hpp"

namespace nn = dist::nn;

TEST_CASE("branches in a program get their own parameters and state, and their outputs are added or put side by side") {
  using Normalize = nn::BatchNormalization<>;
  using Inner = nn::Concatenate<nn::Sequential<Normalize, Normalize>, nn::Sequential<>, Normalize>;
  using Net = nn::Sequential<nn::Input<2, 2>, nn::Residual<Normalize>, nn::Named<"inside", Inner>, Normalize,
                             nn::Add<nn::Sequential<>, nn::Sequential<nn::Reshape<12>, Normalize, nn::Reshape<2, 6>>>>;
  // Up to five normalizations of a few rows follow each other and enlarge rounding errors: 3.1e-6 was seen.
  dist_test::check_emitted<Net>({{6}, {4}}, dist_test::numbers, 1e-5);
}
