#include <dist/nn/activation.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace nn = dist::nn;

static_assert(nn::Activation<nn::Relu> && nn::Activation<nn::Linear> && nn::Activation<nn::LeakyRelu<>>);
static_assert(!nn::Activation<int>);

namespace {

struct WithoutGradient {
  [[maybe_unused]] static double apply(double x) { return x; }
};
struct AtInput : WithoutGradient {
  static double gradient_at(double x, double y_gradient) { return x * y_gradient; }
};
struct OfOutput : WithoutGradient {
  static double gradient(double y, double y_gradient) { return y - y_gradient; }
};
struct WithoutFunction {
  [[maybe_unused]] static double gradient(double, double) { return 0; }
};

}  // namespace

static_assert(!nn::Activation<WithoutGradient> && !nn::Activation<WithoutFunction>);
static_assert(nn::Activation<AtInput> && !nn::HasGradientOfOutput<AtInput>);
static_assert(nn::Activation<OfOutput> && !nn::HasGradientAtInput<OfOutput>);

TEST_CASE("activation gradients are computed from the output, or at the input") {
  CHECK(nn::detail::activation_gradient<AtInput>(3.0, 5.0) == 15);
  CHECK(nn::detail::activation_gradient<OfOutput>(3.0, 5.0) == -2);
}

TEST_CASE("Relu computes its gradient from its output") {
  CHECK(nn::Relu::apply(2.5) == 2.5);
  CHECK(nn::Relu::apply(-2.5) == 0);
  CHECK(nn::Relu::gradient(2.5, 7.0) == 7);
  CHECK(nn::Relu::gradient(0.0, 7.0) == 0);
  CHECK(std::isnan(nn::Relu::apply(std::nan(""))));
}

TEST_CASE("Relu keeps NaN and passes its gradient through") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(nn::Relu::apply(nan)));
  CHECK(nn::Relu::gradient(nan, 3.0) == 3);
  CHECK(std::isnan(nn::Relu::gradient(1.0, nan)));
}

TEST_CASE("LeakyRelu keeps a share of negative numbers, and of the gradient up to 0") {
  CHECK(nn::LeakyRelu<>::apply(-2.5) == -0.5);
  CHECK(nn::LeakyRelu<1, 4>::apply(-2.0F) == -0.5F);
  CHECK(nn::LeakyRelu<1, 4>::apply(3.0) == 3);
  CHECK(nn::LeakyRelu<1, 4>::gradient(3.0, 8.0) == 8);
  CHECK(nn::LeakyRelu<1, 4>::gradient(0.0, 8.0) == 2);
  CHECK(nn::LeakyRelu<1, 4>::gradient(-0.5, 8.0) == 2);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(nn::LeakyRelu<>::apply(-infinity) == -infinity);
  CHECK(std::isnan(nn::LeakyRelu<>::apply(std::nan(""))));
}

TEST_CASE("Linear does not change values or gradients") {
  CHECK(nn::Linear::apply(-2.5F) == -2.5F);
  CHECK(nn::Linear::gradient(-2.5F, 7.0F) == 7);
}
