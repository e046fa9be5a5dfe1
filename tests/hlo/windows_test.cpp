#include <dist/hlo/windows.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <tuple>

#include <dist/core/random.hpp>
#include <dist/hlo/gradients.hpp>
#include <hlo/run.hpp>

namespace hlo = dist::hlo;
using testing::Floats;
using testing::Numbers;

namespace {

using X = Floats<2, 5, 4, 2>;
using Y = Floats<2, 3, 4, 2>;
// Rows: windows of 3, 2 apart, with one row of padding on both sides. Columns: windows of 2, 1 apart, with one column
// of padding before.
using Rows = hlo::Windows<3, 2, 1, 1>;
using Columns = hlo::Windows<2, 1, 1, 0>;

/// Four different values, so that many are equal, all negative, so that padding would be noticed.
Numbers images() {
  Numbers x{X::shape()};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::floor(4 * dist::RandomStream{7, 1}.uniform<float>(i)) - 6;
  return x;
}
Numbers zeros(const dist::Shape& shape) {
  Numbers all{shape};
  for (float& each : all.elements()) each = 0;
  return all;
}

/// Visits the rows, or columns, of the image inside window `number`.
template <class Visit>
void for_each_inside(std::size_t number, std::size_t size, std::size_t stride, std::size_t extent, const Visit& visit) {
  for (std::size_t i = 0; i < size; ++i)
    if (const std::size_t place = number * stride + i; place >= 1 && place - 1 < extent) visit(place - 1);
}

}  // namespace

TEST_CASE("windows are reduced, and the gradient of a maximum passes to its first element") {
  const Numbers x = images();
  Numbers weights{Y::shape()};
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i + 1);
  const auto [sums, maxima, of_sums, of_maxima] = testing::run<X, Y>(
      1,
      [](X all, Y w) {
        const Y sum = hlo::reduce_windows<Rows, Columns>(dist::sum, all);
        const Y maximum = hlo::reduce_windows<Rows, Columns>(dist::max, all);
        const auto [of_sum] = hlo::gradients(hlo::reduce(dist::sum, sum * w), std::tuple{all});
        const auto [of_maximum] = hlo::gradients(hlo::reduce(dist::sum, maximum * w), std::tuple{all});
        return std::tuple{sum, maximum, of_sum, of_maximum};
      },
      x, weights);

  Numbers expected_sums = zeros(Y::shape()), expected_maxima = zeros(Y::shape());
  Numbers expected_of_sums = zeros(X::shape()), expected_of_maxima = zeros(X::shape());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t channel = i % 2, column = i / 2 % 4, row = i / 8 % 3, image = i / 24;
    float* first = nullptr;  // the gradient of the first maximum
    float most = 0;
    for_each_inside(row, 3, 2, 5, [&](std::size_t down) {
      for_each_inside(column, 2, 1, 4, [&](std::size_t right) {
        const float element = x(image, down, right, channel);
        expected_sums[i] += element;
        expected_of_sums(image, down, right, channel) += weights[i];
        if (first == nullptr || element > most) {
          first = &expected_of_maxima(image, down, right, channel);
          most = element;
        }
      });
    });
    expected_maxima[i] = most;
    *first += weights[i];
  }
  CHECK(sums == expected_sums);
  CHECK(maxima == expected_maxima);
  CHECK(of_sums == expected_of_sums);
  CHECK(of_maxima == expected_of_maxima);
}

TEST_CASE("windows with negative padding and dilation have correct gradients") {
  using hlo::untyped::WindowAxis;
  // Windows of 2 elements, 2 apart, over _ _ b _ _ c: the 3 elements a, b, c at a distance of 3, with a cropped.
  const WindowAxis axis{.size = 2, .before = -1, .behind = 1, .dilation = 3, .window_dilation = 2};
  CHECK(axis.outputs(3) == 5);
  const auto [sums, back] = testing::run<Floats<3>, Floats<5>>(
      1,
      [&](auto x, auto w) {
        const Floats<5> sum{hlo::untyped::reduce_windows("add", x.value(), "0.0", {axis})};
        return std::tuple_cat(std::tuple{sum}, hlo::gradients(hlo::reduce(dist::sum, sum * w), std::tuple{x}));
      },
      Numbers{{3}, {1, 10, 100}}, Numbers{{5}, {1, 2, 3, 4, 5}});
  CHECK(sums == Numbers{{5}, {10, 0, 10, 100, 0}});
  CHECK(back == Numbers{{3}, {0, 4, 4}});
}
