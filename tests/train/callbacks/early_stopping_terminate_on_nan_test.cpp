#include <dist/train/callbacks/early_stopping.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "small_model.hpp"

namespace nn = dist::nn;

namespace {
struct Steps {
  int count = 0;
  void on_train_batch_end(std::size_t, nn::CurrentLogs) { ++count; }
};
}  // namespace

TEST_CASE("a fit ends in the batch whose loss is NaN") {
  dist::Tensor<float> x{{24, 4}};
  dist::Tensor<std::int32_t> y{{24}};
  x[4 * 8] = std::numeric_limits<float>::quiet_NaN();  // row 8, in the second batch of 6
  small::Model trained;
  Steps steps;
  trained.model.fit(x, y, {.epochs = 5, .verbose = 0, .batch_size = 6, .shuffle = false},
                    nn::callbacks::TerminateOnNaN{}, steps);
  CHECK(steps.count == 2);
  small::Model sound;
  Steps all;
  sound.model.fit(small::examples(), {.epochs = 2, .verbose = 0}, nn::callbacks::TerminateOnNaN{}, all);
  CHECK(all.count == 8);
}
