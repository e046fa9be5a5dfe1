#include <dist/hlo/type.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

using dist::hlo::element_kind;
using dist::hlo::ElementKind;
using dist::hlo::literal;

static_assert(element_kind<bool> == ElementKind::i1 && element_kind<std::int8_t> == ElementKind::i8);
static_assert(element_kind<std::uint32_t> == ElementKind::ui32 && element_kind<std::int64_t> == ElementKind::i64);
static_assert(element_kind<dist::Float16> == ElementKind::f16 && element_kind<dist::BFloat16> == ElementKind::bf16);
static_assert(element_kind<float> == ElementKind::f32 && element_kind<double> == ElementKind::f64);
static_assert(is_floating(ElementKind::bf16) && !is_floating(ElementKind::ui64));

TEST_CASE("types are written in StableHLO syntax") {
  CHECK(to_string(dist::hlo::Type{ElementKind::ui8, {}}) == "tensor<ui8>");
  CHECK(to_string(dist::hlo::Type{ElementKind::f32, {64, 10}}) == "tensor<64x10xf32>");
}

TEST_CASE("numbers are written with all digits, infinities and NaN as bits") {
  CHECK(literal(true) == "true");
  CHECK(literal(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(literal(-3.0, ElementKind::i32) == "-3");
  CHECK(literal(1.0 / 3) == "3.33333333333333315e-01");
  CHECK(literal(std::numeric_limits<double>::infinity()) == "0x7FF0000000000000");
  CHECK(literal(-std::numeric_limits<float>::infinity()) == "0xFF800000");
  CHECK(literal(std::numeric_limits<double>::infinity(), ElementKind::f16) == "0x7C00");
  CHECK(literal(dist::BFloat16{std::numeric_limits<float>::infinity()}) == "0x7F80");
}
