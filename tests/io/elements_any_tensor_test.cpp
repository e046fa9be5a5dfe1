#include <dist/io/elements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <doctest/doctest.h>

using dist::Shape;
using dist::Tensor;
using dist::io::ElementType;
using dist::io::detail::AnyTensor;

TEST_CASE("a tensor keeps its type, shape and elements, and copies share them") {
  const AnyTensor tensor = AnyTensor::of(Tensor<float>{{2, 2}, {1, 2, 3, 4}});
  CHECK(tensor.type == ElementType::f32);
  CHECK(tensor.shape == Shape{2, 2});
  CHECK(tensor.bytes.size() == 16);
  const AnyTensor copy = tensor;
  CHECK(copy.bytes.data() == tensor.bytes.data());
  CHECK(copy.view<float>()(1, 0) == 3);
}

TEST_CASE("a tensor can be filled with bytes") {
  const AnyTensor tensor = AnyTensor::filled_by(ElementType::u8, Shape{3}, [](std::span<std::byte> room) {
    REQUIRE(room.size() == 3);
    std::fill(room.begin(), room.end(), std::byte{7});
  });
  CHECK(tensor.view<std::uint8_t>()[2] == 7);
}

TEST_CASE("transposed permutes elements of any size") {
  const std::size_t axes[] = {1, 0};
  const auto check = [&]<class T>(T) {
    const AnyTensor turned = AnyTensor::of(Tensor<T>{{2, 3}, {1, 2, 3, 4, 5, 6}}).transposed(axes);
    CHECK(turned.type == dist::io::element_type<T>);
    CHECK(turned.shape == Shape{3, 2});
    CHECK(turned.template view<T>()(2, 0) == 3);
    CHECK(turned.template view<T>()(0, 1) == 4);
  };
  check(std::uint8_t{});
  check(std::int16_t{});
  check(float{});
  check(double{});
}
