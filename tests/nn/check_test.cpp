#include <dist/nn/check.hpp>

#include <cmath>
#include <string>

#include <doctest/doctest.h>

using dist::nn::detail::require_decay;
using dist::nn::detail::require_not_negative;
using dist::nn::detail::require_positive;

TEST_CASE("hyper-parameter ranges include 0, and exclude 1, negative numbers and NaN") {
  CHECK_NOTHROW(require_not_negative("SGD", "learning_rate", 0.0f));
  CHECK_THROWS_WITH_AS(require_not_negative("SGD", "learning_rate", -0.5f),
                       "SGD.learning_rate is out of range (it is -0.5). Give a number of 0 or more.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(require_not_negative("SGD", "learning_rate", NAN), dist::InvalidArgument);
  CHECK_NOTHROW(require_decay("Adam", "beta_1", 0.0f));
  CHECK_NOTHROW(require_decay("Adam", "beta_1", 0.999f));
  CHECK_THROWS_WITH_AS(require_decay("Adam", "beta_1", 1.0f),
                       "Adam.beta_1 is out of range (it is 1). Give a number from 0 to below 1.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(require_decay("Adam", "beta_1", -0.1f), dist::InvalidArgument);
  CHECK_THROWS_AS(require_decay("Adam", "beta_1", NAN), dist::InvalidArgument);
  CHECK_NOTHROW(require_positive("ClipNorm", "norm", 1e-30f));
  CHECK_THROWS_WITH_AS(require_positive("ClipNorm", "norm", 0.0f),
                       "ClipNorm.norm is out of range (it is 0). Give a finite number above 0.", dist::InvalidArgument);
  CHECK_THROWS_AS(require_positive("ClipNorm", "norm", INFINITY), dist::InvalidArgument);
  CHECK_THROWS_AS(require_positive("ClipNorm", "norm", NAN), dist::InvalidArgument);
}

TEST_CASE("require_part accepts numbers from 0 to 1, both included") {
  CHECK_NOTHROW(dist::nn::detail::require_part("AverageWeights", "momentum", 0));
  CHECK_NOTHROW(dist::nn::detail::require_part("AverageWeights", "momentum", 1));
  CHECK_THROWS_WITH_AS(dist::nn::detail::require_part("AverageWeights", "momentum", 1.5f),
                       "AverageWeights.momentum is out of range (it is 1.5). Give a number from 0 to 1.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(dist::nn::detail::require_part("AverageWeights", "momentum", NAN), dist::InvalidArgument);
}

TEST_CASE("require_positive_steps accepts 1 or more") {
  CHECK_NOTHROW(dist::nn::detail::require_positive_steps("CosineDecay", "decay_steps", 1));
  CHECK_THROWS_WITH_AS(dist::nn::detail::require_positive_steps("CosineDecay", "decay_steps", 0),
                       "CosineDecay.decay_steps is out of range (it is 0). Give a number of steps, 1 or more.",
                       dist::InvalidArgument);
}

TEST_CASE("require_trainable rejects a variable that is not trainable") {
  struct Variable {
    bool is_trained;
    [[nodiscard]] bool trainable() const { return is_trained; }
    [[nodiscard]] std::string name() const { return "counter"; }
  };
  CHECK_NOTHROW(dist::nn::detail::require_trainable(Variable{true}));
  CHECK_THROWS_WITH_AS(dist::nn::detail::require_trainable(Variable{false}),
                       "An optimizer was given variable 'counter', which is not trainable (it was made with "
                       "Trainable::no, or OnRead). Make it with Trainable::yes to train it.",
                       dist::InvalidArgument);
}

TEST_CASE("error messages show tiny numbers with all digits") {
  CHECK_THROWS_WITH_AS(require_not_negative("SGD", "learning_rate", -1e-9f),
                       "SGD.learning_rate is out of range (it is -1e-09). Give a number of 0 or more.",
                       dist::InvalidArgument);
}
