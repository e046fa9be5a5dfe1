#include <dist/nn/hlo/layers.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include <dist/core/float16.hpp>
#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/sequential.hpp>
#include <nn/hlo/check_lowering.hpp>

namespace nn = dist::nn;

namespace {

constexpr std::size_t words = 6;
using Net = nn::Sequential<nn::Input<3>, nn::Named<"wte", nn::Embedding<words, 4>>, nn::Dense<4>, nn::Unembed<"wte">>;

dist_test::List ids(std::size_t count, std::uint64_t stream) {
  dist_test::List all = dist_test::numbers(count, stream);
  for (double& each : all) each = std::floor((each + 0.5) * words);
  return all;
}

}  // namespace

TEST_CASE("Unembed in programs, and the gradient of its table, match the plain loops") {
  dist_test::check_emitted<Net>({{3}, {0}}, ids);
}
