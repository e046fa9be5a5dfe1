#include <dist/train/callbacks/learning_rate_scheduler.hpp>

#include <cstddef>

#include <doctest/doctest.h>

#include "small_model.hpp"

namespace nn = dist::nn;
using nn::callbacks::LearningRateScheduler;

TEST_CASE("each epoch has the scheduled rate, which is in the history (spec Q21)") {
  small::Model trained;
  const nn::History history =
      trained.model.fit(small::examples(), {.epochs = 4, .verbose = 0},
                        LearningRateScheduler{[](std::size_t epoch) { return epoch < 2 ? 1e-3F : 1e-4F; }});
  for (std::size_t epoch = 0; epoch < 4; ++epoch)
    CHECK(history["lr"][epoch] == static_cast<double>(epoch < 2 ? 1e-3F : 1e-4F));
  CHECK(trained.model.optimizer().learning_rate() == 1e-4F);
}

TEST_CASE("a schedule may depend on the current rate") {
  small::Model trained{1, 0.5F};
  const nn::History history = trained.model.fit(
      small::examples(), {.epochs = 3, .verbose = 0},
      LearningRateScheduler{[](std::size_t epoch, float rate) { return epoch == 0 ? rate : rate / 2; }});
  CHECK(history["lr"][0] == 0.5);
  CHECK(history["lr"][2] == 0.125);
}
