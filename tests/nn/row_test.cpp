#include <dist/nn/row.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("sums, maxima and counts are right for rows of any length") {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 100U}) {
    CAPTURE(size);
    std::vector<double> elements(size);
    std::iota(elements.begin(), elements.end(), 1.0);
    const nn::Row<const double> row = nn::row_of(std::span<const double>{elements});
    const auto n = static_cast<double>(size);
    CHECK(sum_of(row, [&](std::size_t k) { return row[k]; }) == n * (n + 1) / 2);
    CHECK(count_of(row, [&](std::size_t k) { return row[k] > 10; }) == (n > 10 ? n - 10 : 0));
    const nn::detail::ThreadOfRow thread{size};
    const double largest = max_of(thread, [&](std::size_t k) { return -row[k]; });
    CHECK(largest == (size == 0 ? -std::numeric_limits<double>::infinity() : -1));
    std::vector<double> visited;
    for_each_of(thread, [&](std::size_t k) { visited.push_back(row[k]); });
    CHECK(visited == elements);
    CHECK(thread.is_first());
  }
}

TEST_CASE("element_or_nan is NaN out of range, and index_of_largest returns the first of equal ones") {
  const float elements[] = {1, 3, 3, 2};
  const nn::Row<const float> row{elements, 4};
  CHECK(nn::index_of_largest(row) == 1);
  CHECK(nn::element_or_nan(row, 3) == 2);
  CHECK(std::isnan(nn::element_or_nan(row, 4)));
  const int label = -1;
  CHECK(nn::class_of(nn::Row<const int>{&label, 1}) > 4);
  CHECK((nn::number_of(true) == 1 && nn::number_of(false) == 0));
  CHECK(nn::bin_of(2.0F) == 2);
}
