#include <dist/train/callbacks/reduce_lr_on_plateau.hpp>

#include <cstddef>
#include <vector>

#include <doctest/doctest.h>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/schedules/decays.hpp>

#include "small_model.hpp"

namespace nn = dist::nn;
using nn::callbacks::ReduceLROnPlateau;
using nn::callbacks::ReduceLROnPlateauOptions;

namespace {

struct Script {
  std::vector<double> values;
  void on_epoch_end(const nn::Epoch& epoch, nn::Logs& logs) { logs.set("val_loss", values[epoch.index]); }
};

/// Returns the learning rates of the epochs, starting with 1.
std::vector<double> rates(const std::vector<double>& values, ReduceLROnPlateauOptions options) {
  small::Model trained{1, 1.0F};
  Script script{values};
  ReduceLROnPlateau reduce{std::move(options)};
  const nn::History history =
      trained.model.fit(small::examples(), {.epochs = values.size(), .verbose = 0}, script, reduce);
  return {history["lr"].begin(), history["lr"].end()};
}

}  // namespace

TEST_CASE("the rate is reduced after `patience` epochs without improvement (Keras' rules)") {
  using V = std::vector<double>;
  CHECK(rates({5, 5, 5, 5, 5}, {.factor = 0.5, .patience = 2}) == V{1, 1, 1, 0.5, 0.5});
  CHECK(rates({5, 4, 3, 2}, {.factor = 0.5, .patience = 1}) == V{1, 1, 1, 1});
  CHECK(rates({5, 4.9, 4.8, 4.7}, {.factor = 0.5, .patience = 1, .min_delta = 0.5}) == V{1, 1, 0.5, 0.25});
  // Epochs of the cooldown do not count.
  CHECK(rates({5, 5, 5, 5, 5, 5}, {.factor = 0.5, .patience = 1, .cooldown = 2}) == V{1, 1, 0.5, 0.5, 0.25, 0.25});
  CHECK(rates({5, 5, 5, 5}, {.factor = 0.25, .patience = 1, .min_lr = 0.5}) == V{1, 1, 0.5, 0.5});
}

TEST_CASE("an optimizer with a schedule is rejected before training") {
  small::Strategy strategy{2};
  nn::Network<small::Net> net{strategy, 1};
  nn::Model model{strategy, net, nn::With{nn::SGD{}, nn::ExponentialDecay{0.1F, 10, 0.5F}},
                  nn::SparseCategoricalCrossentropy{}};
  CHECK_THROWS_AS(model.fit(small::examples(), {.verbose = 0}, ReduceLROnPlateau{{.monitor = "loss"}}),
                  dist::InvalidArgument);
  CHECK(model.optimizer().iterations(strategy.scope()) == 0);
}

TEST_CASE("a factor outside (0, 1) is rejected") {
  for (const double factor : {0.0, 1.0, -1.0, 2.0})
    CHECK_THROWS_AS((ReduceLROnPlateau{{.factor = factor}}), dist::InvalidArgument);
}
