#include <dist/nn/chain.hpp>

#include <cstddef>
#include <vector>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;
using List = std::vector<double>;

namespace {

template <class Net>
struct Run {
  nn::detail::Chain<Net, nn::Reference, double> chain;
  nn::Reference::State state;
  dist::Cpu::Queue queue;
  List x, parameters, gradients;

  dist::TensorView<const double> forward() {
    const dist::TensorView<const double> batch{x.data(), Net::InputShape::shape().stacked(x.size() / 2)};
    const auto y = chain.forward(queue, state, parameters.data(), batch, nn::NoReplica{});
    for (double& slope : y.gradient.elements()) slope = 1;
    return y.values;
  }
  List backward() {
    gradients.assign(Net::padded_count, 99);
    chain.template backward<true>(queue, state, parameters.data(), gradients.data(), nn::NoReplica{}, dist::NoOp{});
    const auto dx = chain.input_gradient();
    return {dx.data(), dx.data() + dx.size()};
  }
};

}  // namespace

TEST_CASE("a chain gives the gradient of its input, whose first layer may be a view or be all") {
  Run<nn::Sequential<nn::Input<2>, nn::Reshape<2, 1>, nn::Reshape<2>, nn::Dense<1>>> run;
  CHECK_FALSE(decltype(run.chain)::is_identity);
  run.x = {1, 2, 3, 4};
  run.parameters.assign(32, 0);
  run.parameters[0] = 10;
  run.parameters[1] = 100;
  const auto y = run.forward();
  CHECK(List(y.data(), y.data() + 2) == List{210, 430});
  CHECK(run.backward() == List{10, 100, 10, 100});
  CHECK(run.gradients[0] == 4);
  CHECK(run.gradients[1] == 6);
  // A larger batch, and one without rows.
  run.x = {1, 2, 3, 4, 5, 6};
  static_cast<void>(run.forward());
  CHECK(run.backward() == List{10, 100, 10, 100, 10, 100});
  run.x.clear();
  static_cast<void>(run.forward());
  CHECK(run.backward().empty());
  CHECK(run.gradients[0] == 0);
}

TEST_CASE("a chain of views gives back what it was given") {
  Run<nn::Sequential<nn::Input<2>, nn::Reshape<2, 1>>> run;
  CHECK(decltype(run.chain)::is_identity);
  run.x = {1, 2, 3, 4};
  CHECK(run.forward().data() == run.x.data());
  CHECK(run.backward() == List{1, 1, 1, 1});
}
