#include <dist/nn/layers/kernel_operation.hpp>

#include <concepts>
#include <string>
#include <vector>

#include <dist/device/cpu.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/initializer.hpp>

#include <doctest/doctest.h>

#include "nn/own_activations.hpp"

namespace nn = dist::nn;

namespace {

using Geometry = nn::DenseGeometry<1, 1, nn::Relu>;

/// A back end that records its calls.
struct Recorder {
  using Device = dist::Cpu;
  using State = std::string;
  struct Kernel {
    void forward(State& calls, auto x, auto, auto bias, auto) {
      calls += bias.size() > 0 ? "forward " : "forward without bias ";
      if (x.rows() > 1) calls += "of several rows ";
    }
    void parameter_gradients(State& calls, auto, auto, auto, auto bias) {
      calls += bias.size() > 0 ? "parameters " : "kernel ";
    }
    void bias_gradient(State& calls, auto&&...) { calls += "bias "; }
    void input_gradient(State& calls, auto&&...) { calls += "input "; }
  };
  struct FusingKernel : Kernel {
    using Kernel::input_gradient;
    template <class Before>
    void input_gradient(State& calls, dist::TensorView<const float>, dist::TensorView<const float>,
                        dist::TensorView<const float> x, dist::TensorView<float>) {
      static_assert(std::same_as<Before, nn::Relu>);
      calls += x.data() == nullptr ? "masked input without x " : "masked input ";
    }
  };
  template <class, class T>
  struct Elementwise {
    void forward(State& calls, dist::TensorView<const T> x, dist::TensorView<T> y) {
      calls += x.data() == y.data() ? "apply in place " : "apply ";
    }
    void input_gradient(State& calls, dist::TensorView<const T> value, dist::TensorView<T> dy, dist::TensorView<T> dx) {
      calls += dy.data() == dx.data() ? "activation " : "copy ";
      if (value.data() != dy.data()) calls += "at its input ";
    }
  };
};

}  // namespace

TEST_CASE("backward applies the activation's gradient first, in place, and the input gradient only on request") {
  nn::detail::KernelOperation<Recorder, Recorder::Kernel, Geometry, nn::Relu, float> operation;
  std::string calls;
  std::vector<float> memory(1);
  const dist::TensorView<float> any{memory.data(), dist::Shape{1}};
  const nn::ParameterViews<const float, 2> parameters{any, any};
  const nn::ParameterViews<float, 2> gradients{any, any};
  operation.forward(calls, any, parameters, any);
  operation.backward<true>(calls, any, parameters, any, any, gradients, any);
  CHECK(calls == "forward activation parameters input ");
  calls.clear();
  operation.backward<false>(calls, any, parameters, any, any, gradients, {});
  CHECK(calls == "activation parameters ");
}

TEST_CASE("a layer keeps the activation's input if its gradient needs it, and this activation is never fused") {
  using Operation = nn::detail::KernelOperation<Recorder, Recorder::FusingKernel, Geometry, dist_test::Square, float>;
  static_assert(std::same_as<nn::detail::ActivationOfKernel<dist_test::Square>, nn::Linear>);
  static_assert(Operation::fuses<nn::Relu> && !Operation::fuses<dist_test::Square>);
  Operation operation;
  std::string calls;
  std::vector<float> memory(1);
  const dist::TensorView<float> any{memory.data(), dist::Shape{1}};
  const nn::ParameterViews<const float, 2> parameters{any, any};
  const nn::ParameterViews<float, 2> gradients{any, any};
  operation.forward(calls, any, parameters, any);
  operation.backward<true>(calls, any, parameters, any, any, gradients, any);
  CHECK(calls == "forward apply activation at its input parameters input ");
}

TEST_CASE("a fused backward pass runs the requested parts, and fuses the activations of this and the preceding layer") {
  using Plain = nn::detail::KernelOperation<Recorder, Recorder::Kernel, Geometry, nn::Relu, float>;
  using Fusing = nn::detail::KernelOperation<Recorder, Recorder::FusingKernel, Geometry, nn::Relu, float>;
  static_assert(std::same_as<Fusing::Activation, nn::Relu>);
  static_assert(Fusing::fuses<nn::Relu> && !Plain::fuses<nn::Relu>);
  Fusing operation;
  std::vector<float> memory(1);
  const dist::TensorView<float> any{memory.data(), dist::Shape{1}};
  const nn::ParameterViews<const float, 2> parameters{any, any};
  const nn::ParameterViews<float, 2> gradients{any, any};
  const auto calls_of = [&]<class Pass>(Pass) {
    std::string calls;
    operation.fused_backward<Pass>(calls, any, parameters, any, any, gradients, any);
    return calls;
  };
  CHECK(calls_of(nn::BackwardPass<true>{}) == "activation parameters input ");
  CHECK(calls_of(nn::BackwardPass<false>{}) == "activation parameters ");
  CHECK(calls_of(nn::BackwardPass<true, false>{}) == "activation bias input ");
  CHECK(calls_of(nn::BackwardPass<true, true, true>{}) == "parameters input ");
  CHECK(calls_of(nn::BackwardPass<true, true, false, nn::Relu>{}) == "activation parameters masked input ");
  CHECK(calls_of(nn::BackwardPass<true, false, true, nn::Relu>{}) == "bias masked input ");
  CHECK(calls_of(nn::BackwardPass<true, false, false, nn::Linear, false>{}) == "activation input ");
}

TEST_CASE("a layer without bias has one parameter, and gives its kernel an empty bias") {
  using NoBias = nn::DenseGeometry<1, 1, nn::Relu, nn::detail::has_bias<nn::NoBias>>;
  static_assert(nn::detail::kernel_and_bias<NoBias>({1, 1}, 1).size() == 1);
  static_assert(nn::detail::kernel_and_bias<Geometry>({1, 1}, 1).size() == 2);
  nn::detail::KernelOperation<Recorder, Recorder::Kernel, NoBias, nn::Relu, float> operation;
  std::string calls;
  std::vector<float> memory(1);
  const dist::TensorView<float> any{memory.data(), dist::Shape{1}};
  operation.forward(calls, any, {any}, any);
  operation.backward<true>(calls, any, {any}, any, any, {any}, any);
  operation.fused_backward<nn::BackwardPass<true, false>>(calls, any, {any}, any, any, {any}, any);
  CHECK(calls == "forward without bias activation kernel input activation input ");
}

TEST_CASE("all axes before the kernel's own are rows of the kernel") {
  nn::detail::KernelOperation<Recorder, Recorder::Kernel, Geometry, nn::Relu, float> operation;
  std::string calls;
  std::vector<float> memory(6);
  const dist::TensorView<float> batch{memory.data(), dist::Shape{1, 3, 2, 1}};
  operation.forward(calls, batch, {batch, batch}, batch);
  CHECK(calls == "forward of several rows ");
}
