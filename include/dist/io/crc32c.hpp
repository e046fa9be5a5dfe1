#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <dist/io/little_endian.hpp>

namespace dist::io {

namespace detail {

struct Crc32cTables {
  std::uint32_t of[8][256];
};

/// For eight bytes at a time: table `k` has the checksum of each byte followed by `k` zero bytes. Not constexpr: a
/// compiler takes longer for it than for everything else here.
[[nodiscard]] inline Crc32cTables make_crc32c_tables() noexcept {
  constexpr std::uint32_t polynomial = 0x82F63B78;  // of Castagnoli, its bits reversed
  Crc32cTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t checksum = byte;
    for (int bit = 0; bit < 8; ++bit) checksum = (checksum >> 1) ^ ((checksum & 1U) != 0 ? polynomial : 0);
    tables.of[0][byte] = checksum;
  }
  for (std::size_t table = 1; table < 8; ++table)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables.of[table][byte] = (tables.of[table - 1][byte] >> 8) ^ tables.of[0][tables.of[table - 1][byte] & 0xFFU];
  return tables;
}

/// Takes `bytes` into a checksum whose bits are inverted, by tables.
[[nodiscard]] inline std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t checksum) noexcept {
  static const Crc32cTables tables = make_crc32c_tables();
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint64_t mixed = load_little_endian<std::uint64_t>(bytes.data()) ^ checksum;
    checksum = 0;
    for (std::size_t i = 0; i < 8; ++i) checksum ^= tables.of[7 - i][mixed >> (8 * i) & 0xFFU];
  }
  for (const std::byte byte : bytes)
    checksum = (checksum >> 8) ^ tables.of[0][(checksum ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
  return checksum;
}

#if defined(__x86_64__) && !defined(__NVCC__)
#define DIST_HAS_CRC32C_INSTRUCTION 1

[[nodiscard]] inline bool has_crc32c_instruction() noexcept { return __builtin_cpu_supports("sse4.2"); }

/// What becomes of a checksum when so many zero bytes follow: a linear function of its bits, as a table for each byte.
class Crc32cShift {
 public:
  static constexpr std::size_t bytes = 1024;

  Crc32cShift() noexcept {
    constexpr std::byte zeros[bytes] = {};
    std::uint32_t of_bit[32];
    for (unsigned bit = 0; bit < 32; ++bit) of_bit[bit] = crc32c_by_table(zeros, std::uint32_t{1} << bit);
    for (unsigned byte = 0; byte < 4; ++byte)
      for (unsigned value = 0; value < 256; ++value)
        for (unsigned bit = 0; bit < 8; ++bit)
          if ((value >> bit & 1U) != 0) of_[byte][value] ^= of_bit[8 * byte + bit];
  }
  [[nodiscard]] std::uint32_t operator()(std::uint32_t checksum) const noexcept {
    return of_[0][checksum & 0xFFU] ^ of_[1][checksum >> 8 & 0xFFU] ^ of_[2][checksum >> 16 & 0xFFU] ^
           of_[3][checksum >> 24];
  }

 private:
  std::uint32_t of_[4][256] = {};
};

/// The same by the processor's instruction, for processors that have it. A result takes three cycles, and another
/// instruction may begin in each of them, so three parts of long inputs are taken at a time.
[[nodiscard, gnu::target("sse4.2")]] inline std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                                                                std::uint32_t checksum) noexcept {
  constexpr std::size_t part = Crc32cShift::bytes;
  const auto at = [&](std::size_t place) {
    std::uint64_t eight;  // the processor is little-endian
    std::memcpy(&eight, bytes.data() + place, sizeof eight);
    return eight;
  };
  std::uint64_t first = checksum;
  if (bytes.size() >= 3 * part) {
    static const Crc32cShift shift;
    for (; bytes.size() >= 3 * part; bytes = bytes.subspan(3 * part)) {
      std::uint64_t second = 0;
      std::uint64_t third = 0;
      for (std::size_t i = 0; i < part; i += 8) {
        first = __builtin_ia32_crc32di(first, at(i));
        second = __builtin_ia32_crc32di(second, at(part + i));
        third = __builtin_ia32_crc32di(third, at(2 * part + i));
      }
      first = third ^ shift(static_cast<std::uint32_t>(second) ^ shift(static_cast<std::uint32_t>(first)));
    }
  }
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) first = __builtin_ia32_crc32di(first, at(0));
  checksum = static_cast<std::uint32_t>(first);
  for (const std::byte byte : bytes) checksum = __builtin_ia32_crc32qi(checksum, std::to_integer<unsigned char>(byte));
  return checksum;
}
#endif

}  // namespace detail

/// The CRC-32C (RFC 3720, appendix B.4) of `bytes` appended to those whose checksum is `before`.
[[nodiscard]] inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept {
#ifdef DIST_HAS_CRC32C_INSTRUCTION
  if (detail::has_crc32c_instruction()) return ~detail::crc32c_by_instruction(bytes, ~before);
#endif
  return ~detail::crc32c_by_table(bytes, ~before);
}

}  // namespace dist::io
