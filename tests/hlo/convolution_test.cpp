#include <dist/hlo/convolution.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include <dist/core/random.hpp>
#include <dist/hlo/gradients.hpp>
#include <hlo/run.hpp>

namespace hlo = dist::hlo;
using testing::Floats;
using testing::Numbers;

namespace {

Numbers numbers(const dist::Shape& shape, std::uint64_t stream) {
  Numbers values{shape};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = dist::RandomStream{5, stream}.uniform<float>(i) - 0.5F;
  return values;
}
/// Returns the largest difference, relative to the largest element.
double difference(const Numbers& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double apart = 0, largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    apart = std::max(apart, std::abs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return apart / largest;
}

// Four channels in two groups, and six kernels of 3 x 2.
constexpr std::size_t rows = 5, columns = 6, channels = 4, groups = 2, kernels = 6;
constexpr std::size_t of_group = channels / groups;
using Rows = hlo::Windows<3, 2, 2, 1>;
using Columns = hlo::Windows<2, 3, 0, 1>;
constexpr std::size_t out_rows = Rows::outputs(rows), out_columns = Columns::outputs(columns);
using Images = Floats<2, rows, columns, channels>;
using Kernels = Floats<3, 2, of_group, kernels>;
using Outputs = Floats<2, out_rows, out_columns, kernels>;

/// Calls `visit(image, kernel, output)` with the three indices of each product of the convolution.
template <class Visit>
void for_each_product(const Visit& visit) {
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t row = 0; row < out_rows; ++row)
      for (std::size_t column = 0; column < out_columns; ++column)
        for (std::size_t kernel = 0; kernel < kernels; ++kernel)
          for (std::size_t down = 0; down < 3; ++down)
            for (std::size_t right = 0; right < 2; ++right)
              for (std::size_t c = 0; c < of_group; ++c) {
                const std::size_t y = row * 2 + down, x = column * 3 + right;  // y includes two rows of padding
                if (y < 2 || y - 2 >= rows || x >= columns) continue;
                const std::size_t channel = kernel / (kernels / groups) * of_group + c;
                visit(((n * rows + y - 2) * columns + x) * channels + channel,
                      ((down * 2 + right) * of_group + c) * kernels + kernel,
                      ((n * out_rows + row) * out_columns + column) * kernels + kernel);
              }
}

}  // namespace

TEST_CASE("a convolution and its gradients match plain loops, also in second order") {
  static_assert(out_rows == 3 && out_columns == 2);
  const Numbers x = numbers(Images::shape(), 1), k = numbers(Kernels::shape(), 2);
  const Numbers w = numbers(Outputs::shape(), 3), v = numbers(Images::shape(), 4);
  const auto [outputs, of_images, of_kernels, second] = testing::run<Images, Kernels, Outputs, Images>(
      1,
      [](auto images, auto weights, auto g, auto other) {
        const Outputs y = hlo::convolution<Rows, Columns>(images, weights);
        const auto [dx, dk] = hlo::gradients(hlo::reduce(dist::sum, y * g), std::tuple{images, weights});
        const auto [again] = hlo::gradients(hlo::reduce(dist::sum, dx * other), std::tuple{weights});
        return std::tuple{y, dx, dk, again};
      },
      x, k, w, v);
  std::vector<double> expected(w.size()), of_x(x.size()), of_k(k.size()), of_k_again(k.size());
  for_each_product([&](std::size_t image, std::size_t kernel, std::size_t output) {
    expected[output] += static_cast<double>(x[image]) * static_cast<double>(k[kernel]);
    of_x[image] += static_cast<double>(w[output]) * static_cast<double>(k[kernel]);
    of_k[kernel] += static_cast<double>(w[output]) * static_cast<double>(x[image]);
    of_k_again[kernel] += static_cast<double>(w[output]) * static_cast<double>(v[image]);
  });
  CHECK(difference(outputs, expected) < 1e-6);
  CHECK(difference(of_images, of_x) < 1e-6);
  CHECK(difference(of_kernels, of_k) < 1e-6);
  CHECK(difference(second, of_k_again) < 1e-6);
}
