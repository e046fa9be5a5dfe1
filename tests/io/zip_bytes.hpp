/// Hand-written ZIP archives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <io/bytes.hpp>

namespace dist_test {

/// Returns `value` in `count` bytes, in little-endian order.
inline Bytes little_endian(std::uint64_t value, std::size_t count) {
  Bytes result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(static_cast<std::byte>(value >> (8 * i) & 255));
  return result;
}

/// One file of an archive: its headers and its content.
struct ZipFile {
  std::string name;
  Bytes content;  // as stored in the archive
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;
  unsigned method = 0;
  unsigned flags = 0;
};
inline ZipFile stored(const std::string& name, const Bytes& content, std::uint32_t crc32 = 0) {
  return {name, content, content.size(), crc32, 0, 0};
}

enum class ZipKind { plain, large };

/// Returns an archive, by APPNOTE. A large one has all sizes and offsets in ZIP64 fields.
inline Bytes zip(const std::vector<ZipFile>& files, ZipKind kind = ZipKind::plain, const std::string& comment = "") {
  const bool large = kind == ZipKind::large;
  const auto number = [&](std::uint64_t value) { return little_endian(large ? 0xFFFFFFFF : value, 4); };
  Bytes archive;
  Bytes directory;
  for (const ZipFile& file : files) {
    const std::uint64_t offset = archive.size();
    const Bytes described = joined({little_endian(20, 2), little_endian(file.flags, 2), little_endian(file.method, 2),
                                    little_endian(0, 4), little_endian(file.crc32, 4), number(file.content.size()),
                                    number(file.size), little_endian(file.name.size(), 2)});
    const Bytes extra = !large ? Bytes{}
                               : joined({little_endian(0xCAFE, 2), little_endian(3, 2), bytes("abc"),
                                         little_endian(1, 2), little_endian(24, 2), little_endian(file.size, 8),
                                         little_endian(file.content.size(), 8), little_endian(offset, 8)});
    archive = joined({archive, little_endian(0x04034B50, 4), described, little_endian(2, 2), bytes(file.name),
                      bytes("xx"), file.content});
    directory = joined({directory, little_endian(0x02014B50, 4), little_endian(20, 2), described,
                        little_endian(extra.size(), 2), little_endian(1, 2), little_endian(0, 8), number(offset),
                        bytes(file.name), extra, bytes("c")});
  }
  const std::uint64_t start = archive.size();
  archive = joined({archive, directory});
  const std::uint64_t record = archive.size();
  if (large)
    archive =
        joined({archive, little_endian(0x06064B50, 4), little_endian(44, 8), little_endian(45, 2), little_endian(45, 2),
                little_endian(0, 8), little_endian(files.size(), 8), little_endian(files.size(), 8),
                little_endian(directory.size(), 8), little_endian(start, 8), little_endian(0x07064B50, 4),
                little_endian(0, 4), little_endian(record, 8), little_endian(1, 4)});
  return joined({archive, little_endian(0x06054B50, 4), little_endian(0, 4), little_endian(files.size(), 2),
                 little_endian(files.size(), 2), number(directory.size()), number(start),
                 little_endian(comment.size(), 2), bytes(comment)});
}

}  // namespace dist_test
