#include <dist/nn/optimizers/options.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace nn = dist::nn;

static_assert(nn::is_clipping<nn::ClipNorm> && !nn::is_clipping<nn::WeightDecay>);
static_assert(nn::is_optimizer_option<nn::AccumulateGradients> && !nn::is_optimizer_option<int>);

TEST_CASE("options check their ranges (spec P10, P11)") {
  CHECK_NOTHROW(nn::ClipValue{0.5f}.check());
  CHECK_THROWS_AS(nn::ClipValue{0.0f}.check(), dist::InvalidArgument);
  CHECK_THROWS_AS(nn::ClipNorm{-1.0f}.check(), dist::InvalidArgument);
  CHECK_THROWS_AS(nn::GlobalClipNorm{NAN}.check(), dist::InvalidArgument);
  CHECK_NOTHROW(nn::WeightDecay{.rate = 0}.check());
  CHECK_THROWS_AS(nn::WeightDecay{.rate = -0.1f}.check(), dist::InvalidArgument);
  CHECK_NOTHROW(nn::AverageWeights{.momentum = 1}.check());
  CHECK_THROWS_WITH_AS(nn::AverageWeights{.momentum = 1.5f}.check(),
                       "AverageWeights.momentum is out of range (it is 1.5). Give a number from 0 to 1.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(nn::AverageWeights{.momentum = NAN}.check(), dist::InvalidArgument);
  CHECK_THROWS_AS((nn::AverageWeights{.momentum = 0.5f, .overwrite_frequency = -1}.check()), dist::InvalidArgument);
  CHECK_NOTHROW(nn::AccumulateGradients{1}.check());
  CHECK_THROWS_WITH_AS(nn::AccumulateGradients{0}.check(),
                       "AccumulateGradients.steps is out of range (it is 0). Give the number of calls that make up an "
                       "update, 1 or more.",
                       dist::InvalidArgument);
}

TEST_CASE("defaults are Keras' (spec P11)") {
  CHECK(nn::AverageWeights{}.momentum == 0.99f);
  CHECK(nn::AverageWeights{}.overwrite_frequency == 0);
  CHECK(nn::WeightDecay{}.rate == 0.004f);  // AdamW's
}

TEST_CASE("WeightDecay excludes parameters by a part of their name (spec P11)") {
  CHECK(nn::WeightDecay{}.applies_to("dense/bias"));
  const nn::WeightDecay decay{.exclude = {"bias", "conv2d_1/"}};
  CHECK(!decay.applies_to("dense/bias"));
  CHECK(!decay.applies_to("conv2d_1/kernel"));
  CHECK(decay.applies_to("conv2d/kernel"));
}

namespace {

struct Step {
  [[maybe_unused]] static constexpr std::array<std::string_view, 0> slots{};
  float operator()(float weight, float gradient, float*) const { return weight - gradient; }
};
struct Minimal {
  static constexpr std::string_view name = "Minimal";
  float learning_rate = 1;
  void check() const {}
  template <class T, class Apply>
  void with_update(std::int64_t, Apply&& apply) const {
    apply(Step{});
  }
};
struct Nameless : Minimal {
  static constexpr int name = 7;
};
struct WithoutRate : Minimal {
  double learning_rate = 1;
};
struct WithoutUpdate {
  static constexpr std::string_view name = "WithoutUpdate";
  float learning_rate = 1;
  void check() const {}
};

}  // namespace

TEST_CASE("an OptimizerFunction has a name, a learning rate, a check and an update") {
  CHECK(nn::OptimizerFunction<Minimal>);
  CHECK_FALSE(nn::OptimizerFunction<Nameless>);
  CHECK_FALSE(nn::OptimizerFunction<WithoutRate>);
  CHECK_FALSE(nn::OptimizerFunction<WithoutUpdate>);
  CHECK_FALSE(nn::OptimizerFunction<int>);
  Minimal{}.with_update<float>(1, nn::detail::IgnoreUpdate{});
}
