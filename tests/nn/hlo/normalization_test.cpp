#include <dist/nn/hlo/normalization.hpp>

#include <doctest/doctest.h>

#include <dist/nn/sequential.hpp>

#include "nn/hlo/check_lowering.hpp"

namespace nn = dist::nn;

namespace {

/// Moving statistics that go far in a step.
struct Fast : nn::BatchNormalizationOptions {
  static constexpr double momentum = 0.25;
};
struct FastSample : Fast {
  static constexpr bool sample_variance = true;
  static constexpr double epsilon = 0.01;
};

}  // namespace

TEST_CASE("batch normalization in a program takes statistics of the rows that count, and its moving ones follow") {
  using Net = nn::Sequential<nn::Input<2, 3, 2>, nn::BatchNormalization<nn::PerReplicaStatistics, FastSample>>;
  dist_test::check_emitted<Net>({{6, 2}, {4, 0}});  // a replica without rows keeps its own
}

TEST_CASE("synchronized statistics are those of all replicas' rows, and gradients go through them") {
  using Net = nn::Sequential<nn::Input<3>, nn::BatchNormalization<nn::SynchronizedStatistics, FastSample>,
                             nn::BatchNormalization<nn::SynchronizedStatistics, Fast>>;
  dist_test::check_emitted<Net>({{5, 2}, {0, 4}, {0, 0}, {3, 3}});
}
