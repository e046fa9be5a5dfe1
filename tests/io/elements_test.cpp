#include <dist/io/elements.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>

using dist::FileError;
using dist::Shape;
using dist::io::MemorySource;
using dist::io::read_elements;
using dist_test::Bytes;
using dist_test::bytes;

TEST_CASE("elements are read in memory representation, for any size of reads") {
  for (std::size_t step = 1; step < 5; ++step) {
    const Bytes content = bytes({1, 2, 3, 4, 5, 6});
    dist_test::Trickle source{MemorySource{content}, step};
    const auto array = read_elements<std::uint8_t>(source, Shape{3, 2});
    CHECK(array.shape() == Shape{3, 2});
    CHECK(dist_test::values(array) == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6});
  }
  MemorySource empty{{}};
  CHECK(read_elements<double>(empty, Shape{0, 3}).shape() == Shape{0, 3});
}

TEST_CASE("read_elements reads an array larger than its first buffer") {
  constexpr std::size_t count = 300'000;
  Bytes content(count);
  for (std::size_t i = 0; i < count; ++i) content[i] = static_cast<std::byte>(i % 251);
  MemorySource source{content};
  const auto array = read_elements<std::uint8_t>(source, Shape{count});
  bool same = true;
  for (std::size_t i = 0; i < count; ++i) same = same && array[i] == i % 251;
  CHECK(same);
}

TEST_CASE("too few and too many bytes are rejected") {
  const Bytes content = bytes({1, 2, 3});
  MemorySource few{content, "a.bin"};
  CHECK_THROWS_WITH_AS(static_cast<void>(read_elements<std::uint16_t>(few, Shape{2})),
                       "File 'a.bin' is truncated (its header announces shape [2], 4 bytes of elements, but 3 follow). "
                       "Download or copy the file again.",
                       FileError);
  MemorySource many{content, "a.bin"};
  CHECK_THROWS_WITH_AS(static_cast<void>(read_elements<std::uint16_t>(many, Shape{1})),
                       doctest::Contains("2 bytes of elements, but more follow"), FileError);
  // A terabyte, which cannot be allocated.
  MemorySource huge{content, "a.bin"};
  CHECK_THROWS_AS(static_cast<void>(read_elements<double>(huge, Shape{std::size_t{1} << 37})), FileError);
}

TEST_CASE("reverse_bytes reverses the bytes of every element") {
  std::vector<std::uint16_t> numbers{0x0102, 0xFF00};
  dist::io::reverse_bytes(std::span{numbers});
  CHECK(numbers == std::vector<std::uint16_t>{0x0201, 0x00FF});
  std::vector<std::uint8_t> bytes_stay{1, 2};
  dist::io::reverse_bytes(std::span{bytes_stay});
  CHECK(bytes_stay == std::vector<std::uint8_t>{1, 2});
}

TEST_CASE("elements of another type are converted, in either byte order, for any size of reads") {
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, std::size_t{4096}}) {
    // In IEEE 754, 1.5 and -2 are 0x3FC00000 and 0xC0000000.
    const Bytes content = bytes({0x3F, 0xC0, 0, 0, 0xC0, 0, 0, 0});
    dist_test::Trickle source{MemorySource{content}, step};
    const auto array = read_elements<double, float>(source, Shape{2}, std::endian::big);
    CHECK(dist_test::values(array) == std::vector<double>{1.5, -2});
  }
  const Bytes truths = bytes({0, 1, 7});
  MemorySource source{truths};
  CHECK(dist_test::values(read_elements<float, bool>(source, Shape{3})) == std::vector<float>{0, 1, 1});
}

TEST_CASE("an element that is not representable is reported with its index, also after the first buffer") {
  Bytes content(100'000);
  content[70'001] = std::byte{200};
  MemorySource source{content, "a.bin"};
  CHECK_THROWS_WITH_AS(static_cast<void>(read_elements<std::int8_t, std::uint8_t>(source, Shape{100'000})),
                       "File 'a.bin' has an element that the wanted type cannot hold (element 70001 is 200, wanted "
                       "i8). Read it as its stored type.",
                       FileError);
  MemorySource few{content, "a.bin"};
  CHECK_THROWS_WITH_AS(static_cast<void>(read_elements<double, float>(few, Shape{30'000})),
                       doctest::Contains("announces shape [30000], 120000 bytes of elements, but 100000 follow"),
                       FileError);
}

TEST_CASE("axis_beyond finds the axis at which extents multiply to too many elements") {
  using dist::io::detail::axis_beyond;
  constexpr std::size_t half = std::size_t{1} << 32;
  CHECK(axis_beyond(std::vector<std::size_t>{2, 3}, 6) == 2);
  CHECK(axis_beyond(std::vector<std::size_t>{2, 3}, 5) == 1);
  CHECK(axis_beyond(std::vector<std::size_t>{7}, 6) == 0);
  CHECK(axis_beyond(std::vector<std::size_t>{half, 0, half}, static_cast<std::size_t>(-1)) == 2);
  CHECK(axis_beyond({}, 1) == 0);
}
