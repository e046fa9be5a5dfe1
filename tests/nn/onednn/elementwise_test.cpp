#include <dist/nn/onednn/elementwise.hpp>

#include <concepts>

#include <dist/core/tensor.hpp>
#include <dist/nn/activations/smooth.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

// Loops that the compiler vectorises are as fast.
static_assert(std::same_as<nn::onednn::Elementwise<nn::Relu, float>, nn::reference::Elementwise<nn::Relu, float>>);
static_assert(std::same_as<nn::onednn::Elementwise<nn::Linear, float>, nn::reference::Elementwise<nn::Linear, float>>);

TEST_CASE("functions by oneDNN, in place too, at changing sizes") {
  const auto check = []<class Function>(Function) {
    nn::onednn::State state;
    nn::onednn::Elementwise<Function, float> function;
    for (const std::size_t size : {std::size_t{70}, std::size_t{3}, std::size_t{70}}) {
      dist::Tensor<float> x{dist::Shape{size}};
      for (std::size_t i = 0; i < size; ++i) x[i] = static_cast<float>(i % 13) / 2 - 3;
      dist::Tensor<float> y{x.shape()};
      function.forward(state, x, y);
      dist::Tensor<float> in_place{x};
      function.forward(state, in_place, in_place);
      dist::Tensor<float> dx{x.shape()};
      for (float& element : dx.elements()) element = 2;
      function.input_gradient(state, nn::HasGradientOfOutput<Function> ? y : x, dx, dx);
      for (std::size_t i = 0; i < size; ++i) {
        const double exact = Function::apply(static_cast<double>(x[i]));
        const double gradient = nn::detail::activation_gradient<Function>(
            nn::HasGradientOfOutput<Function> ? exact : static_cast<double>(x[i]), 2.0);
        CHECK(static_cast<double>(y[i]) == doctest::Approx(exact).epsilon(1e-5));
        CHECK(in_place[i] == y[i]);
        CHECK(static_cast<double>(dx[i]) == doctest::Approx(gradient).epsilon(1e-5));
      }
    }
  };
  check(nn::Tanh{});
  check(nn::Gelu{});
}
