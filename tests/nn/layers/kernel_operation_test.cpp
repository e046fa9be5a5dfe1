#include <dist/nn/layers/kernel_operation.hpp>

#include <string>
#include <vector>

#include <dist/nn/activation.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

/// A back end that writes down what it is asked.
struct Recorder {
  using State = std::string;
  struct Kernel {
    void forward(State& calls, auto&&...) { calls += "forward "; }
    void parameter_gradients(State& calls, auto&&...) { calls += "parameters "; }
    void input_gradient(State& calls, auto&&...) { calls += "input "; }
  };
  template <class, class T>
  struct Elementwise {
    void input_gradient(State& calls, dist::TensorView<const T>, dist::TensorView<T> dy, dist::TensorView<T> dx) {
      calls += dy.data() == dx.data() ? "activation " : "copy ";
    }
  };
};

}  // namespace

TEST_CASE("the activation's gradient comes first, in place; the input's only if wanted") {
  nn::detail::KernelOperation<Recorder, Recorder::Kernel, nn::Relu, float> operation;
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
