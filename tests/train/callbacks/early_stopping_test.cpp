#include <dist/train/callbacks/early_stopping.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/train/callbacks/reduce_lr_on_plateau.hpp>
#include <support/saved.hpp>
#include <support/what_throws.hpp>

#include "small_model.hpp"

namespace nn = dist::nn;
using nn::callbacks::EarlyStopping;
using nn::callbacks::EarlyStoppingOptions;

namespace {

/// Sets values of a script in the logs, for later callbacks.
struct Script {
  std::vector<double> values;
  void on_epoch_end(const nn::Epoch& epoch, nn::Logs& logs) { logs.set("val_loss", values[epoch.index]); }
};

struct StopsIn {
  std::size_t epoch;
  void on_epoch_end(auto& model, const nn::Epoch& ended, const nn::Logs&) const {
    if (ended.index == epoch) model.stop_training();
  }
};

/// Returns the number of epochs of a fit.
std::size_t epochs_of(const std::vector<double>& values, EarlyStopping& stopping) {
  small::Model trained;
  Script script{values};
  return trained.model.fit(small::examples(), {.epochs = values.size(), .verbose = 0}, script, stopping)
      .epochs()
      .size();
}
std::size_t epochs_of(const std::vector<double>& values, EarlyStoppingOptions options) {
  EarlyStopping stopping{std::move(options)};
  return epochs_of(values, stopping);
}

}  // namespace

TEST_CASE("a fit ends after `patience` epochs without improvement (spec Q23)") {
  CHECK(epochs_of({5, 4, 4, 3, 2}, {}) == 3);                     // patience 0: the first epoch without improvement
  CHECK(epochs_of({5, 4, 4, 4, 3, 2}, {.patience = 2}) == 4);     // the second one
  CHECK(epochs_of({5, 4, 4, 3, 3, 3, 1}, {.patience = 2}) == 6);  // counted again
  CHECK(epochs_of({5, 4.95, 4.9, 4}, {.min_delta = 0.2, .patience = 2}) == 3);
  CHECK(epochs_of({1, 2, 3, 3, 4}, {.mode = nn::callbacks::Mode::max}) == 4);
  CHECK(epochs_of({5, 6, 7, 8}, {.start_from_epoch = 2}) == 4);  // the first counted epoch is the best one
  CHECK(epochs_of({5, 6, 4, 4}, {.patience = 2}) == 4);
  CHECK(epochs_of({5, 6, 4, 4}, {.patience = 2, .baseline = 3.5}) == 2);  // the first epoch is above the baseline
  CHECK(epochs_of({5, 3, 4, 4}, {.patience = 2, .baseline = 3.5}) == 4);
  CHECK(epochs_of({5, 4, 3, 2}, {.monitor = "nothing"}) == 4);  // reported, without other effects
}

TEST_CASE("a value that no callback of the fit can log is rejected before the first epoch") {
  small::Model trained;
  const auto fit = [&](EarlyStoppingOptions options, auto&&... others) {
    return support::what_throws<dist::InvalidArgument>([&] {
      trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0}, EarlyStopping{std::move(options)}, others...);
    });
  };
  CHECK(fit({.monitor = "los"}, nn::callbacks::ReduceLROnPlateau{{.monitor = "loss"}})
            .starts_with("EarlyStopping monitors 'los', which nothing adds to the logs (the model logs loss"));
  CHECK(fit({}).starts_with("EarlyStopping monitors 'val_loss' (the fit has no validation data)"));
  CHECK(fit({.monitor = "lr"}, nn::callbacks::ReduceLROnPlateau{{.monitor = "loss"}}) == "nothing was thrown");
  CHECK(trained.model.fit(small::examples(), {.epochs = 1, .verbose = 0}, EarlyStopping{{.monitor = "loss"}})
            .epochs()
            .size() == 1);
}

TEST_CASE("the weights of the best epoch are restored, and the next fit starts again") {
  small::Model reference;
  reference.model.fit(small::examples(), {.epochs = 2, .verbose = 0});
  small::Model trained;
  Script script{{5, 4, 6, 7, 1}};
  EarlyStopping stopping{{.patience = 2, .restore_best_weights = true}};
  trained.model.fit(small::examples(), {.epochs = 5, .verbose = 0}, script, stopping);
  CHECK(stopping.stopped_epoch() == 3);
  CHECK(stopping.best_epoch() == 1);
  CHECK(support::Saved{trained.strategy, trained.net} == support::Saved{reference.strategy, reference.net});
  CHECK(epochs_of({9, 8, 7}, stopping) == 3);
  CHECK(!stopping.stopped_epoch());
}

TEST_CASE("the weights of the best epoch, not their average, are restored however the fit ends") {
  small::Model reference;
  reference.model.fit(small::examples(), {.epochs = 2, .verbose = 0});
  const support::Saved best{reference.strategy, reference.net};
  const EarlyStoppingOptions options{.patience = 9, .restore_best_weights = true};
  {
    small::Model trained;  // until the last epoch
    trained.model.fit(small::examples(), {.epochs = 4, .verbose = 0}, Script{{5, 4, 6, 7}}, EarlyStopping{options});
    CHECK(support::Saved{trained.strategy, trained.net} == best);
  }
  {
    small::Model trained;  // until another callback ends it
    trained.model.fit(small::examples(), {.epochs = 4, .verbose = 0}, Script{{5, 4, 6, 7}}, StopsIn{2},
                      EarlyStopping{options});
    CHECK(support::Saved{trained.strategy, trained.net} == best);
  }
  small::Strategy strategy{2};
  nn::Network<small::Net> net{strategy, 1};
  nn::Model averaging{strategy, net, nn::With{nn::Adam{.learning_rate = 0.01F}, nn::AverageWeights{.momentum = 0.5F}},
                      nn::SparseCategoricalCrossentropy{}};
  averaging.fit(small::examples(), {.epochs = 4, .verbose = 0}, Script{{5, 4, 6, 7}}, EarlyStopping{options});
  CHECK(support::Saved{strategy, net} == best);
}

TEST_CASE("more_is_better of a metric decides the direction, whatever its name") {
  small::Strategy strategy{2};
  nn::Network<small::Net> net{strategy, 1};
  nn::Model model{strategy, net, nn::SGD{.learning_rate = 0}, nn::SparseCategoricalCrossentropy{},
                  nn::SparseTopKCategoricalAccuracy{.name = "hits"}};
  struct Rises {
    void on_epoch_end(const nn::Epoch& epoch, nn::Logs& logs) { logs.set("hits", static_cast<double>(epoch.index)); }
  };
  EarlyStopping stopping{{.monitor = "hits", .patience = 2}};
  CHECK(model.fit(small::examples(), {.epochs = 5, .verbose = 0}, Rises{}, stopping).epochs().size() == 5);
  CHECK(stopping.best_epoch() == 4);
}
