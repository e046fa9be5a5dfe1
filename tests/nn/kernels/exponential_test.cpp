#define DIST_DISPATCH_VECTORS 1  // all widths of the processor
#include <dist/nn/kernels/exponential.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "nn/kernels/widths.hpp"

namespace nn = dist::nn;

TEST_CASE("in each vector width, exponentials are right to 3e-7, and NaN stays NaN") {
  for_each_width([](auto at_width) {
    std::vector<float> values(1 << 14);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = -90.0f * float(i) / float(values.size());
    values.back() = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x = values;
    at_width([&]<std::size_t Bytes>() DIST_INLINE_LAMBDA {
      for (std::size_t i = 0; i < values.size(); i += Bytes / sizeof(float)) {
        nn::kernels::Vector<float, Bytes> vector;
        nn::kernels::load<Bytes>(vector, values.data() + i);
        nn::kernels::exponential<Bytes>(vector);
        nn::kernels::store<Bytes>(vector, values.data() + i);
      }
    });
    double worst = 0;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const double right = x[i] < -87.0f ? 0 : std::exp(double(x[i]));
      worst = std::max(worst, right == 0 ? double(values[i]) : std::abs(values[i] / right - 1));
    }
    CHECK(worst < 3e-7);
    CHECK(std::isnan(values.back()));
  });
}
