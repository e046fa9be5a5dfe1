#define DIST_DISPATCH_VECTORS 1  // all widths of the processor
#include <dist/nn/kernels/dense_input_gradient.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "nn/kernels/widths.hpp"

using namespace dist;

namespace {

/// Compares with plain loops in long double, within the error bound of a sum of Units products in any order.
template <std::size_t Inputs, std::size_t Units, class Before, class T>
void check_rows(std::size_t rows) {
  const std::vector<T> dy = numbers<T>(rows * Units, 1);
  const std::vector<T> kernel = numbers<T>(Inputs * Units, 2);
  const std::vector<T> x = numbers<T>(rows * Inputs, 3);
  for_each_width([&](auto at_width) {
    std::vector<T> dx(rows * Inputs + 1, T{77});
    at_width(
        nn::kernels::DenseInputGradient<Inputs, Units, Before, T>{dy.data(), kernel.data(), x.data(), dx.data(), rows});
    CHECK(dx.back() == T{77});
    std::size_t wrong = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = 0; i < Inputs; ++i) {
        long double sum = 0;
        long double magnitude = 0;
        for (std::size_t u = 0; u < Units; ++u) {
          const long double term = static_cast<long double>(dy[r * Units + u]) * kernel[i * Units + u];
          sum += term;
          magnitude += std::abs(term);
        }
        const bool passes = !std::is_same_v<Before, nn::Relu> || x[r * Inputs + i] > 0;
        const long double bound = static_cast<long double>(Units) * std::numeric_limits<T>::epsilon() * magnitude;
        if (!(std::abs(dx[r * Inputs + i] - (passes ? sum : 0)) <= (passes ? bound : 0))) ++wrong;
      }
    }
    CHECK(wrong == 0);
  });
}

template <std::size_t Inputs, std::size_t Units, class T, class Before = nn::Relu>
void check_size() {
  CAPTURE(Inputs);
  CAPTURE(Units);
  for (const std::size_t rows : std::vector<std::size_t>{0, 1, 2, 7, 13, 64, 65}) {
    CAPTURE(rows);
    check_rows<Inputs, Units, Before, T>(rows);
  }
}

}  // namespace

TEST_CASE("the input gradient is right for sizes that are multiples of vectors") { check_size<64, 128, float>(); }

TEST_CASE("the input gradient is right for sizes that are not multiples of vectors") {
  check_size<1, 1, float>();
  check_size<13, 7, float>();
  check_size<45, 10, float>();
  check_size<33, 17, float, nn::Linear>();
  check_size<35, 19, double>();
}

TEST_CASE("the input gradient of one unit has the bits of the kernel for several units") {
  constexpr std::size_t rows = 7, inputs = 21;
  const std::vector<float> dy = numbers<float>(rows, 1), kernel = numbers<float>(inputs, 2);
  const std::vector<float> x = numbers<float>(rows * inputs, 3);
  std::vector<float> expected(rows * inputs), dx(rows * inputs);
  const nn::kernels::DenseInputGradient<inputs, 1, nn::Relu, float> several{dy.data(), kernel.data(), x.data(),
                                                                            expected.data(), rows};
  dist::detail::with_widest_vectors(several);
  nn::kernels::dense_input_gradient<inputs, 1, nn::Relu>(dy.data(), kernel.data(), x.data(), dx.data(), rows);
  CHECK(dx == expected);
}

TEST_CASE("the input gradient is right for more units than a panel holds") {
  check_size<33, 300, float>();
  check_size<19, 257, double>();
}

TEST_CASE("dense_input_gradient uses the processor's widest vectors") {
  const std::vector<float> dy = numbers<float>(5 * 20, 1);
  const std::vector<float> kernel = numbers<float>(40 * 20, 2);
  std::vector<float> dx(5 * 40);
  std::vector<float> expected(5 * 40);
  nn::kernels::dense_input_gradient<40, 20, nn::Linear>(dy.data(), kernel.data(), static_cast<const float*>(nullptr),
                                                        dx.data(), 5);
  detail::with_widest_vectors(nn::kernels::DenseInputGradient<40, 20, nn::Linear, float>{dy.data(), kernel.data(),
                                                                                         nullptr, expected.data(), 5});
  CHECK(dx == expected);
}

TEST_CASE("a NaN in dy reaches unmasked inputs of its row only") {
  constexpr std::size_t inputs = 37;
  constexpr std::size_t units = 21;
  constexpr std::size_t rows = 9;
  std::vector<float> dy = numbers<float>(rows * units, 1);
  dy[4 * units + 20] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> kernel = numbers<float>(inputs * units, 2);
  const std::vector<float> x = numbers<float>(rows * inputs, 3);
  for_each_width([&](auto at_width) {
    std::vector<float> dx(rows * inputs);
    at_width(nn::kernels::DenseInputGradient<inputs, units, nn::Relu, float>{dy.data(), kernel.data(), x.data(),
                                                                             dx.data(), rows});
    std::size_t wrong = 0;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t i = 0; i < inputs; ++i)
        if (std::isnan(dx[r * inputs + i]) != (r == 4 && x[r * inputs + i] > 0)) ++wrong;
    CHECK(wrong == 0);
  });
}
