#include <dist/nn/hlo/layers.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/nn/sequential.hpp>
#include <nn/hlo/check_lowering.hpp>

namespace nn = dist::nn;

TEST_CASE("Softmax in programs matches the plain loops, for rows and pixels, also if the exponentials overflow") {
  const auto large = [](std::size_t count, std::uint64_t stream) {
    std::vector<double> values = dist_test::numbers(count, stream);
    for (double& each : values) each += 200;
    return values;
  };
  dist_test::check_emitted<nn::Sequential<nn::Input<5>, nn::Softmax>>({{3}});
  dist_test::check_emitted<nn::Sequential<nn::Input<2, 1, 3>, nn::Softmax>>({{3}}, large);
}
