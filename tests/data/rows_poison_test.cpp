#include <dist/data/rows.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include <dist/core/float16.hpp>

using dist::Shape;
using dist::Tensor;
using dist::data::detail::poison_rows;

namespace {

template <class T>
Tensor<T> filled(const Shape& shape, T value) {
  Tensor<T> tensor{shape};
  for (T& element : tensor.elements()) element = value;
  return tensor;
}

}  // namespace

TEST_CASE("poisoned rows become NaN, -1 or the largest number, others are unchanged") {
  Tensor<float> floats = filled<float>({3, 2}, 1);
  poison_rows(floats, 1, 1);
  CHECK(floats[1] == 1);
  CHECK(std::isnan(floats[2]));
  CHECK(std::isnan(floats[3]));
  CHECK(floats[4] == 1);
  Tensor<dist::BFloat16> halves = filled<dist::BFloat16>({1}, dist::BFloat16{1.0f});
  poison_rows(halves, 0, 1);
  CHECK(std::isnan(static_cast<float>(halves[0])));
  Tensor<std::int64_t> labels = filled<std::int64_t>({2}, 7);
  poison_rows(labels, 0, 2);
  CHECK(labels[1] == -1);
  Tensor<std::uint8_t> bytes = filled<std::uint8_t>({2}, 7);
  poison_rows(bytes, 0, 0);
  CHECK(bytes[0] == 7);
  poison_rows(bytes, 0, 2);
  CHECK(bytes[0] == 255);
}

TEST_CASE("all parts of a structure are poisoned, except views, bools and other types") {
  dist::data::Example batch{filled<float>({2}, 1), std::array{filled<int>({2}, 7), filled<int>({2}, 8)}};
  poison_rows(batch, 0, 1);
  CHECK(std::isnan(batch.x[0]));
  CHECK(batch.x[1] == 1);
  CHECK(batch.y[1][0] == -1);
  CHECK(batch.y[1][1] == 8);

  Tensor<int> lent = filled<int>({2}, 7);
  std::tuple parts{lent.view(), filled<bool>({2}, true), std::pair{std::string("name"), 3}};
  poison_rows(parts, 0, 2);
  CHECK(lent[0] == 7);
  CHECK(std::get<1>(parts)[0]);
  CHECK(std::get<2>(parts) == std::pair{std::string("name"), 3});
}
