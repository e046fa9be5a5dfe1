#include <dist/nn/kernels/dense_bias_gradient.hpp>

#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include "nn/kernels/widths.hpp"

using namespace dist;

namespace {

template <std::size_t Units, class T>
void check_units() {
  const std::vector<T> first = numbers<T>(9 * Units, 1);
  const std::vector<T> second = numbers<T>(2 * Units, 2);
  const std::vector<nn::kernels::DenseBatch<T>> batches{
      {nullptr, first.data(), 9}, {nullptr, nullptr, 0}, {nullptr, second.data(), 2}};
  std::vector<T> expected(Units);
  for (const auto& batch : batches)
    for (std::size_t r = 0; r < batch.rows; ++r)
      for (std::size_t u = 0; u < Units; ++u) expected[u] += batch.dy[r * Units + u];
  for_each_width([&](auto at_width) {
    std::vector<T> sums(Units, T{5});
    at_width(nn::kernels::DenseBiasGradient<Units, T>{batches, sums.data()});
    CHECK(sums == expected);
  });
  std::vector<T> sums(Units, T{5});
  nn::kernels::dense_bias_gradient<Units>(std::span<const nn::kernels::DenseBatch<T>>{batches}, sums.data());
  CHECK(sums == expected);
}

}  // namespace

TEST_CASE("bias gradients are the sums of dy over batches and rows, in order") {
  check_units<1, float>();
  check_units<7, float>();
  check_units<10, float>();
  check_units<33, float>();
  check_units<128, float>();
  check_units<1, double>();
  check_units<19, double>();
}

TEST_CASE("bias gradients of no rows are zeros") {
  std::vector<float> sums(3, 5.0f);
  nn::kernels::dense_bias_gradient<3>(std::span<const nn::kernels::DenseBatch<float>>{}, sums.data());
  CHECK(sums == std::vector<float>(3, 0.0f));
}
