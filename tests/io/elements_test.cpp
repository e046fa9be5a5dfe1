#include <dist/io/elements.hpp>

#include <doctest/doctest.h>

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

TEST_CASE("elements are read as they lie in memory, whatever the steps of the source") {
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

TEST_CASE("an array larger than the first buffer comes back whole") {
  constexpr std::size_t count = 300'000;
  Bytes content(count);
  for (std::size_t i = 0; i < count; ++i) content[i] = static_cast<std::byte>(i % 251);
  MemorySource source{content};
  const auto array = read_elements<std::uint8_t>(source, Shape{count});
  bool same = true;
  for (std::size_t i = 0; i < count; ++i) same = same && array[i] == i % 251;
  CHECK(same);
}

TEST_CASE("too few bytes and too many are refused") {
  const Bytes content = bytes({1, 2, 3});
  MemorySource few{content, "a.bin"};
  CHECK_THROWS_WITH_AS(static_cast<void>(read_elements<std::uint16_t>(few, Shape{2})),
                       "File 'a.bin' is truncated (its header announces shape [2], 4 bytes of elements, but 3 follow). "
                       "Download or copy the file again.",
                       FileError);
  MemorySource many{content, "a.bin"};
  CHECK_THROWS_WITH_AS(static_cast<void>(read_elements<std::uint16_t>(many, Shape{1})),
                       doctest::Contains("2 bytes of elements, but more follow"), FileError);
  // A terabyte is announced, which no machine of ours would give.
  MemorySource huge{content, "a.bin"};
  CHECK_THROWS_AS(static_cast<void>(read_elements<double>(huge, Shape{std::size_t{1} << 37})), FileError);
}

TEST_CASE("the bytes of every element are turned round") {
  std::vector<std::uint16_t> numbers{0x0102, 0xFF00};
  dist::io::reverse_bytes(std::span{numbers});
  CHECK(numbers == std::vector<std::uint16_t>{0x0201, 0x00FF});
  std::vector<std::uint8_t> bytes_stay{1, 2};
  dist::io::reverse_bytes(std::span{bytes_stay});
  CHECK(bytes_stay == std::vector<std::uint8_t>{1, 2});
}
