#include <dist/hlo/untyped.hpp>

#include <doctest/doctest.h>

#include <hlo/run.hpp>

namespace hlo = dist::hlo;
namespace untyped = dist::hlo::untyped;
using dist::Tensor;
using testing::Floats;

TEST_CASE("values have the types that their operations define") {
  const hlo::Trace trace{1};
  const hlo::Value x = untyped::constant({hlo::ElementKind::f32, {2, 3, 4}}, 1.0);
  CHECK(untyped::type_of(untyped::compare("LT", x, x)) == hlo::Type{hlo::ElementKind::i1, {2, 3, 4}});
  CHECK(untyped::type_of(untyped::convert(x, hlo::ElementKind::i64)) == hlo::Type{hlo::ElementKind::i64, {2, 3, 4}});
  CHECK(untyped::type_of(untyped::transpose(x, {2, 0, 1})).shape == dist::Shape{4, 2, 3});
  CHECK(untyped::transpose(x, {0, 1, 2}) == x);
  CHECK(untyped::type_of(untyped::contract(x, x, {{1}, {1}, {2}, {2}})).shape == dist::Shape{3, 2, 2});
  CHECK(untyped::type_of(untyped::reduce("add", x, "0.0", {1})).shape == dist::Shape{2, 4});
  CHECK(untyped::type_of(untyped::concatenate({x, x, x}, 1)).shape == dist::Shape{2, 9, 4});
  CHECK(untyped::type_of(untyped::slice(x, {0, 0, 1}, {2, 3, 4}, {1, 2, 2})).shape == dist::Shape{2, 2, 2});
  CHECK(untyped::type_of(untyped::pad(x, x, {1, 0, 0}, {0, 2, 0}, {1, 0, 2})).shape == dist::Shape{4, 5, 10});
}

TEST_CASE("slices with strides, interior padding and batched products match XLA's semantics") {
  const auto [odd, padded, products] = testing::run<Floats<5>, Floats<2, 3>>(
      1,
      [](auto x, auto y) {
        return std::tuple{Floats<2>{untyped::slice(x.value(), {1}, {5}, {2})},
                          Floats<12>{untyped::pad(x.value(), Floats<>{9}.value(), {1}, {2}, {1})},
                          Floats<3>{untyped::contract(y.value(), y.value(), {{1}, {1}, {0}, {0}})}};
      },
      Tensor<float>{{5}, {1, 2, 3, 4, 5}}, Tensor<float>{{2, 3}, {1, 2, 3, 4, 5, 6}});
  CHECK(odd == Tensor<float>{{2}, {2, 4}});
  CHECK(padded == Tensor<float>{{12}, {9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 9}});
  CHECK(products == Tensor<float>{{3}, {17, 29, 45}});
}
