#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <dist/core/config.hpp>

namespace dist::io {

/// Returns the CRC-32C (RFC 3720, appendix B.4) of `bytes`, appended to bytes with checksum `before`.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/crc32c.ipp>
#endif
