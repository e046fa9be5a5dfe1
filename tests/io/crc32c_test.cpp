#include <dist/io/crc32c.hpp>
#include <dist/io/crc32c.ipp>  // the separate implementations

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include <io/bytes.hpp>

using dist::io::crc32c;
using dist_test::Bytes;
using dist_test::bytes;

namespace {

/// Returns 32 bytes, each `step` more than the previous one.
Bytes thirty_two(unsigned first, unsigned step) {
  Bytes content;
  for (unsigned i = 0; i < 32; ++i) content.push_back(static_cast<std::byte>(first + i * step));
  return content;
}

/// Computes the checksum bit by bit, by definition.
std::uint32_t slow_crc32c(const Bytes& content) {
  std::uint32_t checksum = 0xFFFFFFFF;
  for (const std::byte byte : content) {
    checksum ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) checksum = checksum >> 1 ^ (checksum % 2 == 1 ? 0x82F63B78U : 0U);
  }
  return ~checksum;
}

}  // namespace

TEST_CASE("crc32c matches the test vectors of RFC 3720, appendix B.4") {
  CHECK(crc32c(thirty_two(0, 0)) == 0x8A9136AA);
  CHECK(crc32c(thirty_two(0xFF, 0)) == 0x62A8AB43);
  CHECK(crc32c(thirty_two(0, 1)) == 0x46DD794E);
  CHECK(crc32c(thirty_two(31, 0U - 1)) == 0x113FDB5C);
  const Bytes read_command =
      bytes({0x01, 0xC0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
             0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0});
  CHECK(crc32c(read_command) == 0xD9963A56);
  CHECK(crc32c(bytes("123456789")) == 0xE3069283);  // the check value of the catalogue of CRC algorithms
  CHECK(crc32c({}) == 0);
}

TEST_CASE("crc32c supports any length, in one or two parts") {
  Bytes content;
  for (unsigned i = 0; i < 100; ++i) content.push_back(static_cast<std::byte>(i * 37 + 5));
  for (std::size_t length = 0; length <= content.size(); ++length) {
    const Bytes part(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK(crc32c(part) == slow_crc32c(part));
    const std::span<const std::byte> whole{part};
    CHECK(crc32c(whole.subspan(length / 3), crc32c(whole.first(length / 3))) == slow_crc32c(part));
  }
}

TEST_CASE("tables and the processor's instruction agree on short and long inputs, in one or two parts") {
  using namespace dist::io::detail;
  Bytes content(20'000);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * i * 31 + i / 7);
  const std::span<const std::byte> whole{content};
  for (const std::size_t length : {1U, 7U, 8U, 3071U, 3072U, 3073U, 3079U, 6144U, 9217U, 20'000U}) {
    const auto part = whole.first(length);
    const std::uint32_t expected = slow_crc32c({part.begin(), part.end()});
    CHECK(crc32c(part) == expected);
    CHECK(~crc32c_by_table(part, ~0U) == expected);
    CHECK(crc32c(part.subspan(length / 3), crc32c(part.first(length / 3))) == expected);
#ifdef DIST_HAS_CRC32C_INSTRUCTION
    if (has_crc32c_instruction()) {
      CHECK(~crc32c_by_instruction(part, ~0U) == expected);
      CHECK(~crc32c_by_instruction(part.subspan(1), crc32c_by_table(part.first(1), ~0U)) == expected);
    }
#endif
  }
}
