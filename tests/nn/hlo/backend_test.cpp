#include <dist/nn/hlo/backend.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <dist/data/example.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/hlo/image_layers.hpp>
#include <dist/nn/hlo/layers.hpp>
#include <dist/nn/hlo/traced_loss.hpp>
#include <dist/nn/hlo/traced_metric.hpp>
#include <dist/nn/hlo/traced_optimizer.hpp>
#include <dist/nn/hlo/traced_regularizer.hpp>
#include <dist/strategy/compiled_step.hpp>
#include <support/four_xla_cpus.hpp>
#include <support/what_throws.hpp>

#include "nn/adversarial.hpp"

namespace hlo = dist::hlo;
namespace nn = dist::nn;
using dist::PerReplica;
using dist::Shape;
using dist::Tensor;

namespace {

using OnHost = dist::Mirrored<dist::ThreadAllReduce>;
using OnXla = dist::Mirrored<dist::ThreadAllReduce, dist::Xla>;

using Batch = dist::data::Example<Tensor<float>, Tensor<std::int32_t>>;

/// Returns rows of sine waves with classes 0, 1 and 2 for all replicas in step `step`; in each third step the second
/// replica has fewer rows.
template <class Net>
PerReplica<Batch> batches(std::size_t replicas, std::size_t step) {
  constexpr Shape row = Net::InputShape::shape();
  return PerReplica<Batch>(replicas, [&](std::size_t replica) {
    const std::size_t rows = replica == 1 && step % 3 == 2 ? 1 : 4;
    Batch batch{Tensor<float>{row.stacked(rows)}, Tensor<std::int32_t>{Shape{rows}}};
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t number = step * 8 + replica * 4 + i;
      batch.y[i] = static_cast<std::int32_t>(number % 3);
      for (std::size_t j = 0; j < row.elements(); ++j)
        batch.x[i * row.elements() + j] = static_cast<float>(
            std::sin(0.7 * static_cast<double>(number) + static_cast<double>(j * (number % 3 + 1)) / 3));
    }
    return batch;
  });
}

struct Trained {
  std::vector<double> losses;
  double accuracy;
  Tensor<float> weights;
};

/// A replica's result: a traced array, or a copy of a view.
template <class Array>
auto copied(const Array& array) {
  if constexpr (hlo::TracedArray<Array>)
    return array;
  else
    return Tensor<float>{array};
}

/// Adds the sum of the input's squares to a traced loss, which must not change the input gradient of a network.
template <class Loss, class X>
auto plus_square(const Loss& loss, const X& x) {
  if constexpr (hlo::TracedArray<Loss>) {
    const hlo::Dynamic<float> input{x.value()};
    return Loss{loss + hlo::Traced<float>{(input * input).sum().value()}};
  } else {
    return loss;
  }
}

/// A custom training loop, under a strategy that compiles the step or runs it directly.
template <class Net, class Backend, class S, class O>
Trained train(S&& strategy, const O& function, std::size_t steps) {
  constexpr std::size_t global_batch = 8;
  nn::Network<Net, Backend> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, function};
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
  auto step = strategy.compile([&](auto& replica, const auto& batch) {
    auto logits = net.forward(replica, batch.x);
    auto loss = nn::sparse_categorical_crossentropy(replica, logits, batch.y, global_batch);
    net.backward(replica, loss);
    optimizer.apply_gradients(replica);
    accuracy.update(replica, logits, batch.y);
    return loss;
  });
  Trained trained;
  for (std::size_t i = 0; i < steps; ++i)
    trained.losses.push_back(
        static_cast<double>(strategy.reduce(dist::sum, step(batches<Net>(strategy.num_replicas_in_sync(), i)))));
  trained.accuracy = accuracy.result(strategy.scope());
  trained.weights = net.parameters().whole(strategy.scope());
  CHECK(optimizer.iterations(strategy.scope()) == static_cast<std::int64_t>(steps));
  return trained;
}

template <class Half>
using MixedOnHost = nn::MixedPrecision<nn::Reference, Half>;
template <class Half>
using MixedOnXla = nn::MixedPrecision<nn::Xla, Half>;

template <class Net, class BackendOnHost = nn::Reference, class BackendOnXla = nn::Xla, class O>
void check_same(const O& function, std::size_t steps, double tolerance, std::size_t replicas = 2) {
  CAPTURE(O::name);
  CAPTURE(replicas);
  const Trained expected = train<Net, BackendOnHost>(OnHost{replicas}, function, steps);
  const Trained compiled = train<Net, BackendOnXla>(OnXla{replicas}, function, steps);
  for (std::size_t step = 0; step < steps; ++step) {
    CAPTURE(step);
    CHECK(compiled.losses[step] == doctest::Approx(expected.losses[step]).epsilon(tolerance).scale(0));
  }
  CHECK(compiled.accuracy == expected.accuracy);
  CHECK(expected.losses.back() < expected.losses.front());
}

using Mlp = nn::Sequential<nn::Input<6>, nn::Dense<8, nn::Tanh>, nn::Dense<3>>;
using Cnn = nn::Sequential<nn::Input<8, 8, 2>, nn::Conv2D<4, 3, nn::Relu>, nn::MaxPool2D<2>, nn::Flatten,
                           nn::Dense<8, nn::Relu>, nn::Dense<3>>;
using Block = nn::Residual<nn::Sequential<nn::Conv2D<4, 3, nn::Linear, 1, nn::Same>, nn::BatchNormalization<>,
                                          nn::Activate<nn::Relu>, nn::Conv2D<4, 1, nn::Linear, 1, nn::Same>>>;
using ResNet = nn::Sequential<nn::Input<6, 6, 4>, Block, nn::GlobalAveragePool2D, nn::Dense<3>>;

}  // namespace

TEST_CASE("a compiled step trains like the same step on the host") {
  SUBCASE("a dense network") {
    check_same<Mlp>(nn::SGD{.learning_rate = 0.25F, .momentum = 0.5F}, 20, 1e-5);
    check_same<Mlp>(nn::Adam{.learning_rate = 0.01F}, 20, 1e-5, 1);
  }
  SUBCASE("a convolutional network") {
    check_same<Cnn>(nn::SGD{.learning_rate = 0.05F}, 20, 1e-5, 1);
    check_same<Cnn>(nn::Adam{.learning_rate = 0.003F}, 20, 1e-5);
    check_same<Cnn>(nn::RMSprop{.learning_rate = 0.001F}, 5, 1e-5);
  }
  SUBCASE("networks with 16-bit factors (spec P22)") {
    const nn::SGD sgd{.learning_rate = 0.05F};
    // Without rounding, losses would differ by at least 1e-4.
    check_same<Cnn, MixedOnHost<dist::BFloat16>, MixedOnXla<dist::BFloat16>>(sgd, 20, 2e-5);
    check_same<Mlp, MixedOnHost<dist::Float16>, MixedOnXla<dist::Float16>>(sgd, 20, 2e-5, 1);
  }
  SUBCASE("a residual network with batch normalization") {
    check_same<ResNet>(nn::SGD{.learning_rate = 0.05F}, 20, 1e-5);
    check_same<ResNet>(nn::Adam{.learning_rate = 0.003F}, 20, 1e-5);
  }
}

namespace {

/// Trains the networks of adversarial.hpp in steps that the strategy compiles or runs directly.
template <class Backend, class S>
std::vector<float> train_adversarially(S&& strategy) {
  using Strategy = std::remove_cvref_t<S>;
  adversarial::Pair<Backend, Strategy> pair{strategy};
  const auto compiled = [&](adversarial::Phase phase) {
    return strategy.compile([&pair, phase](auto& replica, const auto& batch) {
      return adversarial::take_step(replica, pair.generator, pair.critic, pair.of_generator, pair.of_critic, phase,
                                    batch.x, batch.y);
    });
  };
  auto real = compiled(adversarial::Phase::critic_on_real),
       generated = compiled(adversarial::Phase::critic_on_generated),
       generator = compiled(adversarial::Phase::generator);
  const std::size_t replicas = strategy.num_replicas_in_sync();
  for (int step = 0; step < adversarial::steps; ++step) {
    const PerReplica<adversarial::Batch> batches(replicas, [&](std::size_t replica) {
      const dist::IndexRange part = dist::shard_of(adversarial::rows, replica, replicas);
      return adversarial::batch_of(step, part.begin, part.size());
    });
    const adversarial::Phase phase = adversarial::phase_of(step);
    auto& run = phase == adversarial::Phase::critic_on_real        ? real
                : phase == adversarial::Phase::critic_on_generated ? generated
                                                                   : generator;
    static_cast<void>(run(batches));
  }
  return pair.values(strategy);
}

}  // namespace

TEST_CASE("a generator and a critic train in compiled steps as on the host") {
  for (const std::size_t replicas : {1U, 2U, 3U}) {  // of two and three, the last has fewer rows
    CAPTURE(replicas);
    adversarial::check_same(train_adversarially<nn::Xla>(OnXla{replicas}),
                            train_adversarially<nn::Reference>(OnHost{replicas}));
  }
}

TEST_CASE("a compiled step returns input gradients, starts from given gradients, and ignores padding rows") {
  const auto compute = [&]<class Backend>(auto&& strategy, Backend) {
    nn::Network<Mlp, Backend> net{strategy, 3};
    nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.5F}};
    auto step = strategy.compile([&](auto& replica, const auto& batch) {
      auto y = net.forward(replica, batch.x);
      const auto loss = nn::compute_loss(nn::MeanSquaredError{}, replica, y, batch.y, nn::GlobalBatchSize{6});
      auto dx = copied(net.backward(replica, plus_square(loss, batch.x), nn::input_gradient));
      optimizer.apply_gradients(replica);
      // The gradient of the sum of y^2 / 2, which is not zero in padding rows, because biases are not.
      const auto again = adversarial::values_of(net.forward(replica, batch.x));
      net.backward(replica, again);
      optimizer.apply_gradients(replica);
      return dx;
    });
    const auto dx = step(PerReplica<adversarial::Batch>(2, [](std::size_t replica) {
      const std::size_t rows = replica == 0 ? 4 : 2;
      adversarial::Batch batch{Tensor<float>{Shape{rows, 6}}, Tensor<float>{Shape{rows, 3}}};
      for (std::size_t i = 0; i < batch.x.size(); ++i) batch.x[i] = static_cast<float>(i % 7) / 7;
      for (std::size_t i = 0; i < batch.y.size(); ++i) batch.y[i] = static_cast<float>(i % 4) - 1;
      return batch;
    }));
    std::vector<float> all;
    for (std::size_t replica = 0; replica < 2; ++replica)
      all.insert(all.end(), dx[replica].elements().begin(), dx[replica].elements().end());
    const Tensor<float> weights = net.parameters().whole(strategy.scope());
    all.insert(all.end(), weights.elements().begin(), weights.elements().end());
    return all;
  };
  adversarial::check_same(compute(OnXla{2}, nn::Xla{}), compute(OnHost{2}, nn::Reference{}));
}

TEST_CASE("calls of a compiled step must be in the order of a training step") {
  OnXla strategy{1};
  nn::Network<Mlp, nn::Xla> net{strategy};
  const auto refused = [&](auto step) {
    return support::what_throws<dist::InvalidArgument>(
        [&] { static_cast<void>(strategy.compile(step)(batches<Mlp>(1, 0))); });
  };
  CHECK(refused([&](auto& replica, const auto&) { net.backward(replica, hlo::Traced<float>{1}); }) ==
        "A network's backward was called before its forward (the compiled step has not computed a batch with it yet). "
        "Call forward and a loss first, in the same step.");
  CHECK(refused([&](auto& replica, const auto&) {
          static_cast<void>(net.backward(replica, hlo::Traced<float>{1}, nn::only_input_gradient));
        }).starts_with("A network's backward was called before its forward"));
  CHECK(refused([&](auto& replica, const auto& batch) {
          auto y = net.forward(replica, batch.x);
          static_cast<void>(net.backward(replica, y, nn::only_input_gradient));
          static_cast<void>(net.traced_gradients(replica));
        }).starts_with("A network has no gradients to use"));
  const auto narrow = [&](auto& replica, const auto& batch) {
    static_cast<void>(net.forward(replica, batch.x));
    net.backward(replica, batch.x);
  };
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          static_cast<void>(strategy.compile(narrow)(batches<Mlp>(1, 0)));
        }).find("the gradient has shape [4, 6], the outputs of the last forward [4, 3]") != std::string::npos);
  CHECK(refused([&](auto& replica, const auto&) { static_cast<void>(net.traced_gradients(replica)); }) ==
        "A network has no gradients to use (the compiled step has not called backward yet). Call forward, a "
        "loss and backward first, in the same step.");
  const auto wrong = [&](auto& replica, const auto& batch) { return net.forward(replica, batch.x); };
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          static_cast<void>(strategy.compile(wrong)(batches<Cnn>(1, 0)));
        }).find("the batch has shape [4, 8, 8, 2], the network takes rows of shape [6]") != std::string::npos);
}

TEST_CASE("a network on Xla computes on the host in a function that is not compiled") {
  OnHost on_host{2};
  OnXla strategy{2};
  const auto outputs = [&]<class Backend>(auto& on, Backend) {
    nn::Network<Mlp, Backend> net{on, 3};
    return on.run(
        [&](auto& replica, const Batch& batch) { return Tensor<float>{net.forward(replica, batch.x).values}; },
        batches<Mlp>(2, 2));
  };
  const auto expected = outputs(on_host, nn::Reference{});
  const auto computed = outputs(strategy, nn::Xla{});
  CHECK(computed[0] == expected[0]);
  CHECK(computed[1] == expected[1]);
  const auto rounded = outputs(strategy, MixedOnXla<dist::BFloat16>{});
  CHECK(rounded[1] == outputs(on_host, MixedOnHost<dist::BFloat16>{})[1]);
  CHECK(rounded[1] != expected[1]);
}
