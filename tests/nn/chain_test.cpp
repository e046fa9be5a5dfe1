#include <dist/nn/chain.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/concatenate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include "nn/run_network.hpp"
#include "nn/steady_steps.hpp"

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

TEST_CASE("a chain computes the gradient of its input, also if the first layers, or all, are views") {
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
  // A larger batch, and an empty one.
  run.x = {1, 2, 3, 4, 5, 6};
  static_cast<void>(run.forward());
  CHECK(run.backward() == List{10, 100, 10, 100, 10, 100});
  run.x.clear();
  static_cast<void>(run.forward());
  CHECK(run.backward().empty());
  CHECK(run.gradients[0] == 0);
}

TEST_CASE("a chain of views returns its input") {
  Run<nn::Sequential<nn::Input<2>, nn::Reshape<2, 1>>> run;
  CHECK(decltype(run.chain)::is_identity);
  run.x = {1, 2, 3, 4};
  CHECK(run.forward().data() == run.x.data());
  CHECK(run.backward() == List{1, 1, 1, 1});
}

using dist_test::numbers;

namespace {

using Small = nn::Sequential<nn::Input<7, 6, 2>, nn::Conv2D<3, 3, nn::Relu>, nn::MaxPool2D<2>, nn::Flatten,
                             nn::Dense<5, nn::Relu>, nn::Dense<4>>;
using Deep = nn::Sequential<nn::Input<36>, nn::Reshape<6, 6, 1>, nn::Conv2D<4, 3, nn::Linear, 1, nn::Same>, nn::ReLU,
                            nn::Conv2D<3, 2, nn::Relu, 2>, nn::Flatten, nn::ReLU, nn::Dense<3>, nn::Reshape<3, 1>>;
using StartsWithoutParameters =
    nn::Sequential<nn::Input<8, 8, 1>, nn::MaxPool2D<2>, nn::ReLU, nn::Flatten, nn::Dense<6, nn::Relu>, nn::Dense<2>>;

/// Adds its replica's number, which is its state, and counts calls.
struct AddReplica {
  template <class In>
  struct On {
    using Output = In;
    static constexpr std::string_view name = "add_replica";
    static constexpr auto& parameters = nn::detail::no_parameters;
    static constexpr std::array state{nn::StateSpec{"seen", dist::Shape{1}, 3}};
    static constexpr bool is_view = false;
    static constexpr bool uses_replica = true;

    template <class Backend, class T>
    struct Operation {
      template <class Call>
      void forward(const Call& call, typename Backend::State&, dist::TensorView<const T> x,
                   const nn::ParameterViews<const T, 0>&, dist::TensorView<T> y) {
        ++call.replica.forwards;
        if constexpr (Call::training) call.state[0][0] = call.replica.number;
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] + static_cast<T>(call.state[0][0]);
      }
      template <bool InputGradient>
      void backward(const auto& replica, typename Backend::State&, dist::TensorView<const T> x,
                    const nn::ParameterViews<const T, 0>&, dist::TensorView<const T>, dist::TensorView<T> dy,
                    const nn::ParameterViews<T, 0>&, dist::TensorView<T> dx) {
        static_assert(InputGradient);
        ++replica.backwards;
        for (std::size_t i = 0; i < x.size(); ++i) dx[i] = dy[i];
      }
    };
  };
};
struct FakeReplica {
  double number;
  mutable int forwards = 0;
  mutable int backwards = 0;
};

}  // namespace

TEST_CASE("layers with uses_replica get the replica, the mode and their state, also for an empty batch (spec P21)") {
  using Net = nn::Sequential<nn::Input<2>, nn::Dense<2>, AddReplica, nn::Reshape<2, 1>>;
  nn::Workspace<Net, nn::Reference, double> workspace;
  const std::vector<double> parameters(Net::padded_count, 0.0);
  std::vector<double> gradients(Net::padded_count, 99.0);
  const dist::Tensor<double> x{dist::Shape{3, 2}};
  const FakeReplica replica{.number = 7};
  double state[16] = {3};

  const auto inferred =
      workspace.forward(parameters, x, nn::ForwardPass<FakeReplica, nn::Inference, const double>{replica, state});
  CHECK(inferred.values[5] == 3);
  CHECK(state[0] == 3);
  const nn::ForwardPass<FakeReplica, nn::Training, double> training{replica, state};
  CHECK(workspace.forward(parameters, x, training).values[5] == 7);
  CHECK(state[0] == 7);

  CHECK(workspace.forward(parameters, x.view().rows(0, 0), training).values.size() == 0);
  CHECK(replica.forwards == 3);
  workspace.backward(parameters, gradients, replica);
  CHECK(replica.backwards == 1);
  CHECK(gradients == std::vector<double>(Net::padded_count, 0.0));
}

TEST_CASE("gradients of whole networks agree with central differences") {
  for (const std::size_t rows : {std::size_t{1}, std::size_t{3}}) {
    CAPTURE(rows);
    dist_test::check_gradients<Small, nn::Reference>(rows);
    dist_test::check_gradients<Deep, nn::Reference>(rows);
    dist_test::check_gradients<StartsWithoutParameters, nn::Reference>(rows);
  }
}

namespace {

/// Compares the input gradient of `Net` in double with central differences of the loss, alone and with the gradients of
/// the parameters.
template <class Net>
void check_input_gradient(std::size_t rows) {
  nn::Workspace<Net, nn::Reference, double> workspace;
  const auto parameters = numbers(Net::padded_count, 1);
  auto batch = numbers(rows * Net::InputShape::elements, 2);
  const auto expected = dist_test::pass(workspace, parameters, batch);
  const auto forward = [&] {
    const auto targets = numbers(expected.outputs.size(), 3);
    const dist::TensorView<const double> x{batch.data(), Net::InputShape::shape().stacked(rows)};
    const auto y = workspace.forward(parameters, x);
    for (std::size_t i = 0; i < targets.size(); ++i) y.gradient[i] = targets[i] + y.values[i];
  };
  const auto found = [&] {
    const auto dx = workspace.input_gradient();
    CHECK(dx.shape() == Net::InputShape::shape().stacked(rows));
    return List(dx.data(), dx.data() + dx.size());
  };

  List gradients(Net::padded_count, 99);
  forward();
  workspace.template backward<nn::GradientSources<false, true>>(parameters, gradients);
  CHECK(gradients == List(Net::padded_count, 99));
  const List dx = found();
  forward();
  workspace.template backward<nn::GradientSources<true, true>>(parameters, gradients);
  CHECK(found() == dx);
  std::size_t index = 0;
  for (const nn::Parameter& parameter : Net::parameters)
    for (std::size_t i = 0; i < parameter.shape.elements(); ++i)
      CHECK(gradients[parameter.offset + i] == doctest::Approx(expected.gradients[index++]).epsilon(1e-12));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    constexpr double step = 1e-5;
    const double before = batch[i];
    batch[i] = before + step;
    const double above = dist_test::pass(workspace, parameters, batch).loss;
    batch[i] = before - step;
    const double below = dist_test::pass(workspace, parameters, batch).loss;
    batch[i] = before;
    const double numeric = (above - below) / (2 * step);
    CAPTURE(i);
    CHECK(std::abs(dx[i] - numeric) <= 1e-6 * std::fmax(1.0, std::abs(numeric)));
  }
}

/// Layers whose parameter gradients cannot be left out, alone and in branches.
using Normalized =
    nn::Sequential<nn::Input<3, 4>, nn::LayerNormalization<>, nn::MultiHeadAttention<2, 3>, nn::Flatten,
                   nn::Concatenate<nn::Sequential<nn::Dense<4, nn::Tanh>, nn::LayerNormalization<>>, nn::Sequential<>>,
                   nn::Dense<3>>;
using Residuals =
    nn::Sequential<nn::Input<5>, nn::Residual<nn::Sequential<nn::Dense<6, nn::Tanh>, nn::Dense<5>>>, nn::Softmax>;
/// The activation's gradient needs its input.
using Smooth = nn::Sequential<nn::Input<4>, nn::Dense<5, nn::Gelu>, nn::Dense<2, nn::Sigmoid>>;

}  // namespace

TEST_CASE("input gradients of whole networks agree with central differences, and leave other gradients as they are") {
  for (const std::size_t rows : {std::size_t{1}, std::size_t{3}}) {
    CAPTURE(rows);
    check_input_gradient<Small>(rows);
    check_input_gradient<Deep>(rows);
    check_input_gradient<StartsWithoutParameters>(rows);
    check_input_gradient<Normalized>(rows);
    check_input_gradient<Residuals>(rows);
    check_input_gradient<Smooth>(rows);
  }
}

TEST_CASE("an empty batch has no output, and gradients of zero") {
  nn::Workspace<Small, nn::Reference, double> workspace;
  const auto parameters = numbers(Small::padded_count, 1);
  for (int time = 0; time < 2; ++time) {
    const auto empty = dist_test::pass(workspace, parameters, {});
    CHECK(empty.outputs.empty());
    CHECK(empty.gradients == std::vector<double>(Small::parameter_count, 0.0));
    // A full batch in this workspace works again.
    CHECK(dist_test::pass(workspace, parameters, numbers(2 * Small::InputShape::elements, 2)).outputs.size() == 8);
  }
}

TEST_CASE("rows are independent, and smaller batches reuse memory") {
  nn::Workspace<Small, nn::Reference, double> workspace;
  const auto parameters = numbers(Small::padded_count, 1);
  const auto three = numbers(3 * Small::InputShape::elements, 2);
  const auto together = dist_test::pass(workspace, parameters, three);
  std::vector<double> gradient_sum(Small::parameter_count, 0.0);
  for (std::size_t row = 0; row < 3; ++row) {
    const auto first = three.begin() + static_cast<std::ptrdiff_t>(row * Small::InputShape::elements);
    const std::vector<double> image(first, first + Small::InputShape::elements);
    const auto weights = parameters;
    const dist::TensorView<const double> x{image.data(), dist::Shape{1, 7, 6, 2}};
    const auto y = workspace.forward(weights, x);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(y.values[i] == doctest::Approx(together.outputs[row * 4 + i]).epsilon(1e-14));
      y.gradient[i] = numbers(12, 3)[row * 4 + i] + y.values[i];
    }
    std::vector<double> gradients(Small::padded_count);
    workspace.backward(weights, gradients);
    std::size_t index = 0;
    for (const nn::Parameter& parameter : Small::parameters)
      for (std::size_t i = 0; i < parameter.shape.elements(); ++i)
        gradient_sum[index++] += gradients[parameter.offset + i];
  }
  CHECK(dist_test::difference(gradient_sum, together.gradients) < 1e-13);
}

TEST_CASE("a steady step does not allocate, also for smaller batches") {
  dist_test::check_steady_steps<Small>({4, 2, 0, 4, 3});
}
