#pragma once

#include <cstring>

#include <dist/io/crc32c.hpp>
#include <dist/io/little_endian.hpp>

namespace dist::io::detail {

struct Crc32cTables {
  std::uint32_t of[8][256];
};

/// Makes the tables for eight bytes at a time: table `k` has the checksum of each byte followed by `k` zero bytes. Not
/// constexpr, because compilers take too long.
[[nodiscard]] inline Crc32cTables make_crc32c_tables() noexcept {
  constexpr std::uint32_t polynomial = 0x82F63B78;  // Castagnoli, bits reversed
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

/// Updates an inverted checksum by `bytes`, with tables.
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

/// Shifts a checksum by `bytes` zero bytes: a linear function of its bits, with one table per byte.
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

/// Updates an inverted checksum by `bytes`, with the processor's instruction. It has a latency of three cycles and a
/// throughput of one per cycle, so long inputs are processed in three parts at a time.
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

}  // namespace dist::io::detail

namespace dist::io {

DIST_INLINE std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
#ifdef DIST_HAS_CRC32C_INSTRUCTION
  if (detail::has_crc32c_instruction()) return ~detail::crc32c_by_instruction(bytes, ~before);
#endif
  return ~detail::crc32c_by_table(bytes, ~before);
}

}  // namespace dist::io
