#include <dist/nn/layers/recomputed.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

namespace {

using Body = nn::Sequential<
    nn::Residual<nn::Sequential<nn::LayerNormalization<>, nn::MultiHeadAttention<2, 3, nn::AttendToPast>>>,
    nn::Dense<5, nn::Gelu>, nn::Dense<6>>;
template <class... Layers>
using Net = nn::Sequential<nn::Input<4, 6>, nn::Dense<6>, Layers..., nn::Flatten, nn::Dense<2>>;
template <class Layer>
using First = nn::Sequential<nn::Input<4, 6>, Layer, nn::Flatten, nn::Dense<2>>;

/// Compares the bits of outputs and gradients of two networks.
template <class Recomputed, class Kept, class Backend, class T>
void check_equal() {
  nn::Workspace<Recomputed, Backend, T> recomputed;
  nn::Workspace<Kept, Backend, T> kept;
  const auto parameters = dist_test::numbers(Kept::padded_count, 1);
  for (const std::size_t rows : {2U, 3U, 0U, 1U}) {
    const auto batch = dist_test::numbers(rows * Kept::InputShape::elements, rows);
    const auto computed = dist_test::pass(recomputed, parameters, batch);
    const auto expected = dist_test::pass(kept, parameters, batch);
    CHECK(computed.outputs == expected.outputs);
    CHECK(computed.gradients == expected.gradients);
  }
}

}  // namespace

TEST_CASE("Recomputed layers have the bits and the names of layers whose outputs are kept") {
  check_equal<Net<nn::Recomputed<Body>>, Net<Body>, nn::Reference, double>();
  check_equal<Net<nn::Recomputed<Body>>, Net<Body>, nn::OneDnn, float>();
  check_equal<First<nn::Recomputed<Body>>, First<Body>, nn::OneDnn, float>();
  check_equal<First<nn::Recomputed<nn::Recomputed<Body>>>, First<Body>, nn::Reference, double>();
  using Names = std::vector<std::string>;
  Names recomputed, kept;
  for (const nn::Parameter& parameter : Net<nn::Recomputed<Body>>::parameters) recomputed.push_back(parameter.name());
  for (const nn::Parameter& parameter : Net<Body>::parameters) kept.push_back(parameter.name());
  CHECK(recomputed == kept);
}

TEST_CASE("gradients of Recomputed layers agree with central differences") {
  dist_test::check_gradients<Net<nn::Recomputed<Body>>, nn::Reference>(2);
}
