#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/core/error.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/gzip.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/npz_writer.hpp>

namespace dist::io::detail {

/// Returns the part of an NPY file before the elements: version 1.0, row-major, padded with spaces to a multiple of 64
/// bytes.
[[nodiscard]] inline std::string npy_start(ElementType type, const Shape& shape) {
  constexpr std::size_t alignment = 64;
  std::string extents;
  for (const std::size_t extent : shape.extents()) extents += concat(extents.empty() ? "" : " ", extent, ",");
  if (shape.rank() > 1) extents.pop_back();
  std::string header = concat("{'descr': '", bytes_of(type) == 1 ? '|' : '<', npy_code(type),
                              "', 'fortran_order': False, 'shape': (", extents, "), }");
  constexpr std::size_t before = 10;  // the magic, the version and the length
  const std::size_t unpadded = before + header.size() + 1;
  header.append((alignment - unpadded % alignment) % alignment, ' ');
  header += '\n';
  std::string start = concat(npy_magic, '\x01', '\0');
  start += static_cast<char>(header.size() & 0xFFU);
  start += static_cast<char>(header.size() >> 8);
  return start + header;
}

[[nodiscard]] inline std::span<const std::byte> text_bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>{text.data(), text.size()});
}

inline constexpr std::uint64_t max16 = 0xFFFF;
inline constexpr std::uint64_t max32 = 0xFFFFFFFF;
inline constexpr std::uint64_t needs_zip64 = 45;
inline constexpr std::uint64_t made_by_zip64 = 3 << 8 | needs_zip64;  // Unix, version of the specification
inline constexpr std::uint64_t zip64_id = 1;
inline constexpr std::uint64_t large_sizes_bytes = 20;

/// Appends little-endian numbers and bytes.
class ZipRecord {
 public:
  ZipRecord& u16(std::uint64_t number) { return put(static_cast<std::uint16_t>(number)); }
  ZipRecord& u32(std::uint64_t number) { return put(static_cast<std::uint32_t>(number)); }
  ZipRecord& u64(std::uint64_t number) { return put(number); }
  ZipRecord& bytes(std::span<const std::byte> all) {
    bytes_.insert(bytes_.end(), all.begin(), all.end());
    return *this;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  template <class Number>
  ZipRecord& put(Number number) {
    std::byte written[sizeof number];
    store_little_endian(number, written);
    return bytes(written);
  }

  std::vector<std::byte> bytes_;
};

/// Returns `number`, or the placeholder `most` if it does not fit and is stored elsewhere.
[[nodiscard]] inline std::uint64_t within(std::uint64_t number, std::uint64_t most) noexcept {
  return number < most ? number : most;
}

/// Appends the fields that local headers and directory entries have in common.
inline void describe(ZipRecord& record, const ZipEntry& entry, bool zip64) {
  constexpr std::uint64_t needs_plain = 20;
  constexpr std::uint64_t is_utf8 = 1 << 11;
  constexpr std::uint64_t first_day = 1 << 5 | 1;  // of January 1980
  bool ascii = true;
  for (const char letter : entry.name) ascii = ascii && static_cast<unsigned char>(letter) < 0x80;
  record.u16(zip64 ? needs_zip64 : needs_plain).u16(ascii ? 0 : is_utf8).u16(entry.method).u16(0).u16(first_day);
  record.u32(entry.crc32).u32(within(entry.compressed_size, max32)).u32(within(entry.size, max32));
  record.u16(entry.name.size());
}

inline void add_to_directory(ZipRecord& directory, const ZipEntry& entry) {
  constexpr std::uint64_t readable_file = std::uint64_t{0100644} << 16;
  ZipRecord large;
  for (const std::uint64_t number : {entry.size, entry.compressed_size, entry.header_offset})
    if (number >= max32) large.u64(number);
  const std::size_t large_bytes = large.bytes().size();
  directory.u32(0x02014B50).u16(made_by_zip64);
  describe(directory, entry, large_bytes > 0);
  directory.u16(large_bytes > 0 ? large_bytes + 4 : 0).u16(0).u16(0).u16(0).u32(readable_file);
  directory.u32(within(entry.header_offset, max32)).bytes(text_bytes(entry.name));
  if (large_bytes > 0) directory.u16(zip64_id).u16(large_bytes).bytes(large.bytes());
}

DIST_INLINE void write_npy(const std::string& path, const NpyElements& array) {
  AtomicFile file{path};
  file.append(text_bytes(npy_start(array.type, array.shape)));
  file.append(array.bytes);
  file.commit();
}

}  // namespace dist::io::detail

namespace dist::io {

DIST_INLINE void ZipWriter::add(std::string_view name, std::initializer_list<std::span<const std::byte>> parts) {
  using detail::large_sizes_bytes, detail::max16, detail::max32, detail::zip64_id;
  if (name.empty() || name.size() >= max16 || !names_.insert(std::string(name)).second)
    throw InvalidArgument(concat("The archive '", file_.path(), "' cannot hold a file named ", quoted(name)),
                          name.empty()           ? "the name is empty"
                          : name.size() >= max16 ? "the name has more than 65534 bytes"
                                                 : "another file has this name",
                          "Give each file its own name");
  ZipEntry entry;
  entry.name = name;
  entry.header_offset = file_.size();
  for (const std::span<const std::byte> part : parts) {
    entry.size += part.size();
    entry.crc32 = crc32_of(part, entry.crc32);
  }
  entry.compressed_size = entry.size;
  const bool large = entry.size >= max32;
  detail::ZipRecord header;
  header.u32(0x04034B50);
  describe(header, entry, large);
  header.u16(large ? large_sizes_bytes : 0).bytes(detail::text_bytes(name));
  if (large) header.u16(zip64_id).u16(large_sizes_bytes - 4).u64(entry.size).u64(entry.compressed_size);
  file_.append(header.bytes());
  for (const std::span<const std::byte> part : parts) file_.append(part);
  entries_.push_back(std::move(entry));
}

DIST_INLINE void ZipWriter::commit() {
  const std::uint64_t start = file_.size();
  using detail::max16, detail::max32, detail::needs_zip64, detail::within;
  detail::ZipRecord directory;
  for (const ZipEntry& entry : entries_) add_to_directory(directory, entry);
  const std::uint64_t bytes = directory.bytes().size();
  const std::uint64_t entries = entries_.size();
  if (entries >= max16 || bytes >= max32 || start >= max32) {
    directory.u32(0x06064B50).u64(44).u16(detail::made_by_zip64).u16(needs_zip64).u32(0).u32(0);
    directory.u64(entries).u64(entries).u64(bytes).u64(start);
    directory.u32(0x07064B50).u32(0).u64(start + bytes).u32(1);
  }
  directory.u32(0x06054B50).u16(0).u16(0).u16(within(entries, max16)).u16(within(entries, max16));
  directory.u32(within(bytes, max32)).u32(within(start, max32)).u16(0);
  file_.append(directory.bytes());
  file_.commit();
}

DIST_INLINE void NpzWriter::add(std::string_view name, const detail::NpyElements& array) {
  const std::string start = detail::npy_start(array.type, array.shape);
  archive_.add(name.empty() ? std::string() : concat(name, ".npy"), {detail::text_bytes(start), array.bytes});
}

}  // namespace dist::io
