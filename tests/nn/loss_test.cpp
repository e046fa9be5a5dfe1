#include <dist/nn/loss.hpp>

#include <cstdint>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>

namespace nn = dist::nn;

namespace {

struct NoName {
  void check(auto, auto) const {}
};

/// A minimal loss: the output itself, with slope 1.
struct Identity {
  static constexpr std::string_view name = "identity";
  void check(dist::TensorView<const float>, dist::TensorView<const float>) const {}
  float per_example(std::span<const float> outputs, std::span<const float>) const { return outputs[0]; }
  float per_example(std::span<const float> outputs, std::span<const float>, float scale,
                    std::span<float> gradient) const {
    gradient[0] = scale;
    return outputs[0];
  }
};

struct Outputs {
  dist::TensorView<const float> values;
  dist::TensorView<float> gradient;
};

}  // namespace

static_assert(nn::LossFunction<nn::SparseCategoricalCrossentropy, float, std::int32_t>);
static_assert(nn::LossFunction<nn::MeanSquaredError, double, double>);
static_assert(nn::LossFunction<Identity, float, float>);
static_assert(!nn::LossFunction<Identity, double, float>);
static_assert(!nn::LossFunction<NoName, float, float>);

TEST_CASE("Loss divides a sum by the global batch, and is 0 if that is empty (spec P01)") {
  const nn::Loss<float> loss{6.0, 3, 12};
  CHECK(loss.value() == 0.5f);
  CHECK(loss.total() == 6.0);
  CHECK(loss.examples() == 3);
  CHECK(nn::Loss<float>{6.0, 3, 0}.value() == 0.0f);
}

TEST_CASE("any functor is a loss: its rows are summed, and its gradient is scaled") {
  dist::Default strategy;
  dist::Tensor<float> outputs{dist::Shape{3, 1}};
  outputs[0] = 1.0f, outputs[1] = 2.0f, outputs[2] = 4.0f;
  dist::Tensor<float> gradient{dist::Shape{3, 1}};
  const auto loss = strategy.run([&](auto& replica) {
    return nn::compute_loss(Identity{}, replica, Outputs{outputs.view(), gradient.view()}, outputs, 4);
  });
  CHECK(loss.value() == 1.75f);
  for (std::size_t row = 0; row < 3; ++row) CHECK(gradient[row] == 0.25f);
  CHECK(nn::total_loss(Identity{}, nn::values_of(outputs), nn::values_of(outputs)) == 7.0);
}
