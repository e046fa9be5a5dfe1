#include <dist/nn/schedules/decays.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include "compare.hpp"

namespace nn = dist::nn;

static_assert(nn::LearningRateSchedule<nn::PiecewiseConstant>);

TEST_CASE("each step has Keras' rate") {
  compare(nn::PiecewiseConstant{.boundaries = {3, 7}, .values = {0.1f, 0.01f, 0.001f}},
          keras_schedules::piecewise_constant);
}

TEST_CASE("without boundaries the rate is constant") {
  const nn::PiecewiseConstant constant{{}, {0.5f}};
  CHECK_NOTHROW(constant.check());
  CHECK(constant(0) == 0.5);
  CHECK(constant(1'000'000) == 0.5);
}

TEST_CASE("mismatched boundaries and values are rejected") {
  CHECK_THROWS_WITH_AS((nn::PiecewiseConstant{{3, 7}, {0.1f, 0.2f}}).check(),
                       "PiecewiseConstant has the wrong number of values (there are 2 values and 2 boundaries). Give "
                       "one more value than boundaries.",
                       dist::InvalidArgument);
  CHECK_THROWS_WITH_AS((nn::PiecewiseConstant{{7, 7}, {1, 2, 3}}).check(),
                       "PiecewiseConstant.boundaries do not increase (7 follows 7). Give steps in increasing order.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS((nn::PiecewiseConstant{{7}, {1, NAN}}).check(), dist::InvalidArgument);
}
