#include <dist/io/little_endian.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

#include <io/bytes.hpp>

using dist::io::load_little_endian;
using dist::io::store_little_endian;
using dist_test::Bytes;
using dist_test::bytes;

TEST_CASE("numbers are loaded in little-endian order from any address") {
  const Bytes content = bytes({0xFF, 1, 2, 3, 0x84, 5, 6, 7, 0x88});
  CHECK(load_little_endian<std::uint8_t>(content.data()) == 0xFF);
  CHECK(load_little_endian<std::uint16_t>(content.data() + 1) == 0x0201);
  CHECK(load_little_endian<std::uint32_t>(content.data() + 1) == 0x84030201);
  CHECK(load_little_endian<std::uint64_t>(content.data() + 1) == 0x8807060584030201);
}

TEST_CASE("numbers are stored in little-endian order") {
  Bytes content(4);
  store_little_endian(std::uint16_t{0xFE01}, content.data() + 1);
  CHECK(content == bytes({0, 0x01, 0xFE, 0}));
  std::array<std::byte, 8> wide{};
  store_little_endian(std::uint64_t{0x8807060584030201}, wide.data());
  CHECK(load_little_endian<std::uint64_t>(wide.data()) == 0x8807060584030201);
}
