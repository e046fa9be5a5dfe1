#pragma once

#include <cstddef>
#include <cstdint>
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

/// Takes eight bytes into a checksum whose bits are inverted.
[[nodiscard]] inline std::uint32_t crc32c_step([[maybe_unused]] const Crc32cTables& tables, std::uint32_t checksum,
                                               std::uint64_t bytes) {
#if defined(__SSE4_2__) && !defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__builtin_ia32_crc32di(checksum, bytes));
#else
  const std::uint64_t mixed = bytes ^ checksum;
  std::uint32_t result = 0;
  for (std::size_t i = 0; i < 8; ++i) result ^= tables.of[7 - i][mixed >> (8 * i) & 0xFFU];
  return result;
#endif
}

}  // namespace detail

/// The CRC-32C (RFC 3720, appendix B.4) of `bytes` appended to those whose checksum is `before`.
[[nodiscard]] inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  static const detail::Crc32cTables tables = detail::make_crc32c_tables();
  std::uint32_t checksum = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8))
    checksum = detail::crc32c_step(tables, checksum, load_little_endian<std::uint64_t>(bytes.data()));
  for (const std::byte byte : bytes)
    checksum = (checksum >> 8) ^ tables.of[0][(checksum ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
  return ~checksum;
}

}  // namespace dist::io
