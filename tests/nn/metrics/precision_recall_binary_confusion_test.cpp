#include <dist/nn/metrics/precision_recall.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("outputs above the threshold are positive, and correct if the target agrees") {
  const float outputs[] = {0.5f, 0.75f, 0.25f, 0.75f, NAN};
  const int targets[] = {0, 0, 2, 1, 1};
  std::vector<double> counts(4);
  nn::Precision{}.for_each_bin(nn::Row<const float>{outputs, 5}, nn::Row<const int>{targets, 5},
                               [&](std::size_t cell) { ++counts[cell]; });
  const nn::detail::BinaryConfusion answers{
      dist::TensorView<const double>{counts.data(), nn::detail::BinaryConfusion::shape()}};
  CHECK(answers.true_negatives == 1);
  CHECK(answers.false_positives == 1);
  CHECK(answers.false_negatives == 2);
  CHECK(answers.true_positives == 1);
}

TEST_CASE("part_of returns 0 for an empty total") {
  CHECK(nn::detail::part_of(1, 4) == 0.25);
  CHECK(nn::detail::part_of(0, 0) == 0);
}
