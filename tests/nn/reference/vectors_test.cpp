#include <dist/nn/reference/vectors.hpp>

#include <cstddef>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

namespace reference = dist::nn::reference;

TEST_CASE("dot adds every product once, for lengths around the number of partial sums") {
  for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 15, 16, 17, 47, 48}) {
    CAPTURE(size);
    std::vector<double> a(size);
    std::vector<double> b(size, 2.0);
    for (std::size_t i = 0; i < size; ++i) a[i] = static_cast<double>(i);
    const double n = static_cast<double>(size);
    CHECK(reference::dot(a.data(), b.data(), size) == n * (n - 1));  // 2 (0 + … + n-1); 0 for no elements
  }
}

TEST_CASE("add and add_scaled accumulate") {
  std::vector<float> to{1, 2, 3};
  const std::vector<float> from{10, 20, 30};
  reference::add(from.data(), to.data(), 3);
  CHECK(to == std::vector<float>{11, 22, 33});
  reference::add_scaled(-1.0F, from.data(), to.data(), 2);
  CHECK(to == std::vector<float>{1, 2, 33});
}

TEST_CASE("are_finite finds a NaN and an infinity at each place") {
  for (const float special : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()})
    for (std::size_t at = 0; at < 19; ++at) {
      std::vector<float> values(19, std::numeric_limits<float>::max());
      CHECK(reference::are_finite(values.data(), values.size()));
      values[at] = special;
      CHECK_FALSE(reference::are_finite(values.data(), values.size()));
    }
}
