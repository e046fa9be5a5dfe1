#include <dist/nn/layers/named.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;
using Names = std::vector<std::string>;

namespace {

Names names_of(std::span<const nn::Parameter> layout) {
  Names names;
  for (const nn::Parameter& parameter : layout) names.push_back(parameter.name());
  return names;
}

using Two = nn::Sequential<nn::Dense<4>, nn::Dense<4>>;

}  // namespace

TEST_CASE("a named layer keeps its name when layers are added before it") {
  using Before = nn::Sequential<nn::Input<4>, nn::Named<"hidden", nn::Dense<4>>, nn::Dense<2>>;
  using After = nn::Sequential<nn::Input<4>, nn::Dense<4>, nn::Named<"hidden", nn::Dense<4>>, nn::Dense<2>>;
  CHECK(names_of(Before::parameters) == Names{"hidden/kernel", "hidden/bias", "dense/kernel", "dense/bias"});
  CHECK(names_of(After::parameters) ==
        Names{"dense/kernel", "dense/bias", "hidden/kernel", "hidden/bias", "dense_1/kernel", "dense_1/bias"});
}

TEST_CASE("the name of a Sequential is a scope with separately numbered layers") {
  using Net = nn::Sequential<nn::Input<4>, nn::Dense<4>, nn::Named<"stem", Two>, nn::Dense<2>>;
  CHECK(Net::layer_count == 4);
  CHECK(names_of(Net::parameters) == Names{"dense/kernel", "dense/bias", "stem/dense/kernel", "stem/dense/bias",
                                           "stem/dense_1/kernel", "stem/dense_1/bias", "dense_1/kernel",
                                           "dense_1/bias"});
  using Nested = nn::Sequential<nn::Input<4>, nn::Named<"a", nn::Sequential<nn::Named<"b", Two>, Two>>,
                                nn::Named<"c", nn::Sequential<nn::Named<"d", nn::Sequential<nn::Named<"e", Two>>>>>>;
  CHECK(names_of(Nested::parameters) == Names{"a/b/dense/kernel", "a/b/dense/bias", "a/b/dense_1/kernel",
                                              "a/b/dense_1/bias", "a/dense/kernel", "a/dense/bias", "a/dense_1/kernel",
                                              "a/dense_1/bias", "c/d/e/dense/kernel", "c/d/e/dense/bias",
                                              "c/d/e/dense_1/kernel", "c/d/e/dense_1/bias"});
}

TEST_CASE("names of a named Sequential are nested scopes") {
  using Net = nn::Sequential<nn::Input<4>, nn::Named<"outer", nn::Named<"inner", Two>>>;
  CHECK(names_of(Net::parameters) == Names{"outer/inner/dense/kernel", "outer/inner/dense/bias",
                                           "outer/inner/dense_1/kernel", "outer/inner/dense_1/bias"});
}

TEST_CASE("the name of a composite layer is a scope for its parameters and its state") {
  using Body = nn::Sequential<nn::Named<"first", nn::Conv2D<1, 1>>, nn::BatchNormalization<>, nn::Conv2D<1, 1>>;
  using Net = nn::Sequential<nn::Input<2, 2, 1>, nn::Named<"block", nn::Residual<Body>>,
                             nn::Named<"other", nn::Sequential<nn::Residual<Body>>>>;
  CHECK(names_of(Net::parameters) == Names{"block/first/kernel", "block/first/bias", "block/batch_normalization/gamma",
                                           "block/batch_normalization/beta", "block/conv2d/kernel", "block/conv2d/bias",
                                           "other/first/kernel", "other/first/bias", "other/batch_normalization/gamma",
                                           "other/batch_normalization/beta", "other/conv2d/kernel",
                                           "other/conv2d/bias"});
  CHECK(Net::state[0].name() == "block/batch_normalization/moving_mean");
  CHECK(Net::state[3].name() == "other/batch_normalization/moving_variance");
}

TEST_CASE("named layers compute the same as layers without names") {
  using Plain = nn::Sequential<nn::Input<4>, Two, nn::Residual<Two>>;
  using WithNames = nn::Sequential<nn::Input<4>, nn::Named<"stem", Two>, nn::Named<"block", nn::Residual<Two>>>;
  const auto parameters = dist_test::numbers(Plain::padded_count, 1);
  const auto batch = dist_test::numbers(3 * 4, 2);
  nn::Workspace<Plain, nn::Reference, double> plain;
  nn::Workspace<WithNames, nn::Reference, double> with_names;
  const auto expected = dist_test::pass(plain, parameters, batch);
  const auto named = dist_test::pass(with_names, parameters, batch);
  CHECK(named.outputs == expected.outputs);
  CHECK(named.gradients == expected.gradients);
}
