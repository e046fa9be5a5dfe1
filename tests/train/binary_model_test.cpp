// Model with a binary loss, an optimizer with norms, a learning rate schedule and counting metrics has the same history
// under every strategy.
#include <dist/train/model.hpp>

#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <dist/data/batch.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/dist.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/binary_crossentropy.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/auc.hpp>
#include <dist/nn/metrics/precision_recall.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/schedules/decays.hpp>
#include <dist/nn/schedules/warm_up.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/central_storage.hpp>

namespace nn = dist::nn;

namespace {

struct Trained {
  nn::History history;
  nn::Logs evaluated;
  float next_rate;
};

/// Trains on points in a plane, whose target is the side of a line.
template <class S>
Trained train(std::unique_ptr<S> strategy) {
  dist::Tensor<float> x{dist::Shape{48, 2}}, y{dist::Shape{48, 1}};
  for (std::size_t row = 0; row < 48; ++row) {
    x[2 * row] = static_cast<float>(std::sin(1.3 * static_cast<double>(row)));
    x[2 * row + 1] = static_cast<float>(std::cos(0.7 * static_cast<double>(row)));
    y[row] = x[2 * row] > 0.5F * x[2 * row + 1] ? 1.0F : 0.0F;
  }
  const auto points = dist::data::tensor_slices(std::move(x), std::move(y)) | dist::data::batch(12);
  nn::Network<nn::Sequential<nn::Input<2>, nn::Dense<8, nn::Relu>, nn::Dense<1>>> net{*strategy, 5};
  const nn::WarmUp schedule{4, nn::CosineDecay{.initial_learning_rate = 0.125F, .decay_steps = 40}};
  nn::Model model{*strategy,
                  net,
                  nn::With{nn::Lamb{}, schedule},
                  nn::BinaryCrossentropy{.label_smoothing = 0.0625F},
                  nn::BinaryAccuracy{.threshold = 0},
                  nn::Precision{.threshold = 0},
                  nn::Auc{.from_logits = true}};
  CHECK(model.optimizer().learning_rate() == 0);
  Trained trained{model.fit(points, {.epochs = 8, .verbose = 0}), {}, 0};
  trained.evaluated = model.evaluate(points, {.verbose = 0});
  trained.next_rate = model.optimizer().learning_rate();
  return trained;
}

}  // namespace

TEST_CASE("a binary classifier has the same history under every strategy (spec P15, P24)") {
  const Trained expected = train(std::make_unique<dist::Default>());
  CHECK(expected.history["loss"].back() < 0.5 * expected.history["loss"].front());
  CHECK(expected.evaluated["binary_accuracy"] > 0.9);
  CHECK(expected.evaluated["auc"] > 0.95);
  CHECK(expected.next_rate ==
        static_cast<float>(nn::CosineDecay{.initial_learning_rate = 0.125F, .decay_steps = 40}(8 * 4 - 4)));
  const auto check = [&](const Trained& trained) {
    for (const char* name : {"loss", "binary_accuracy", "precision", "auc"}) {
      CAPTURE(name);
      for (std::size_t epoch = 0; epoch < 8; ++epoch)
        CHECK(trained.history[name][epoch] == doctest::Approx(expected.history[name][epoch]).epsilon(1e-4));
      CHECK(trained.evaluated[name] == doctest::Approx(expected.evaluated[name]).epsilon(1e-4));
    }
    CHECK(trained.next_rate == expected.next_rate);
  };
  for (const std::size_t replicas : {std::size_t{2}, std::size_t{3}}) {
    check(train(std::make_unique<dist::Mirrored<dist::ThreadAllReduce>>(replicas)));
    check(train(std::make_unique<dist::CentralStorage<dist::Cpu>>(replicas)));
  }
}
