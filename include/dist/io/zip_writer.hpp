#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/gzip.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/zip.hpp>

namespace dist::io {

/// A ZIP archive (APPNOTE 6.3), written through an AtomicFile, of files that are stored as they are. What needs it is
/// written as ZIP64: files and archives of 4 GiB and more, and 65535 files and more. All files have the time 1980-01-01, so
/// that the same content makes the same archive.
class ZipWriter {
 public:
  /// Throws FileError as AtomicFile does.
  explicit ZipWriter(std::string path) : file_(std::move(path)) {}

  /// Adds a file whose content is `parts`, one after the other. `name` is in UTF-8. Throws InvalidArgument for a name that
  /// is empty, comes twice, or is too long; FileError as AtomicFile does.
  void add(std::string_view name, std::initializer_list<std::span<const std::byte>> parts) {
    if (name.empty() || name.size() >= max16 || !names_.insert(std::string(name)).second)
      throw InvalidArgument(concat("The archive '", file_.path(), "' cannot hold a file of the name ", quoted(name)),
                            name.empty()           ? "it is empty"
                            : name.size() >= max16 ? "it has more than 65534 bytes"
                                                   : "another file has it",
                            "Give each file a name of its own");
    ZipEntry entry;
    entry.name = name;
    entry.header_offset = file_.size();
    for (const std::span<const std::byte> part : parts) {
      entry.size += part.size();
      entry.crc32 = crc32_of(part, entry.crc32);
    }
    entry.compressed_size = entry.size;
    const bool large = entry.size >= max32;
    Record header;
    header.u32(0x04034B50);
    describe(header, entry, large);
    header.u16(large ? large_sizes_bytes : 0);
    header.bytes(name);
    if (large) header.u16(zip64_id).u16(large_sizes_bytes - 4).u64(entry.size).u64(entry.compressed_size);
    header.append_to(file_);
    for (const std::span<const std::byte> part : parts) file_.append(part);
    entries_.push_back(std::move(entry));
  }

  /// Writes the directory, and makes all of it the content of the file. Throws FileError as AtomicFile does.
  void commit() {
    const std::uint64_t start = file_.size();
    Record directory;
    for (const ZipEntry& entry : entries_) add_to_directory(directory, entry);
    const std::uint64_t bytes = directory.size();
    const std::uint64_t entries = entries_.size();
    if (entries >= max16 || bytes >= max32 || start >= max32) {
      directory.u32(0x06064B50).u64(44).u16(made_by).u16(needs_zip64).u32(0).u32(0);
      directory.u64(entries).u64(entries).u64(bytes).u64(start);
      directory.u32(0x07064B50).u32(0).u64(start + bytes).u32(1);
    }
    directory.u32(0x06054B50).u16(0).u16(0).u16(within(entries, max16)).u16(within(entries, max16));
    directory.u32(within(bytes, max32)).u32(within(start, max32)).u16(0);
    directory.append_to(file_);
    file_.commit();
  }

 private:
  static constexpr std::uint64_t max16 = 0xFFFF;
  static constexpr std::uint64_t max32 = 0xFFFFFFFF;
  static constexpr std::uint64_t needs_zip64 = 45;
  static constexpr std::uint64_t made_by = 3 << 8 | needs_zip64;  // under Unix, by the version of the specification
  static constexpr std::uint64_t zip64_id = 1;
  static constexpr std::uint64_t large_sizes_bytes = 20;

  /// Numbers, little-endian, and texts.
  class Record {
   public:
    Record& u16(std::uint64_t number) { return put(static_cast<std::uint16_t>(number)); }
    Record& u32(std::uint64_t number) { return put(static_cast<std::uint32_t>(number)); }
    Record& u64(std::uint64_t number) { return put(number); }
    Record& bytes(std::string_view text) {
      const auto all = std::as_bytes(std::span<const char>{text.data(), text.size()});
      bytes_.insert(bytes_.end(), all.begin(), all.end());
      return *this;
    }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
    void append(const Record& other) { bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end()); }
    void append_to(AtomicFile& file) const { file.append(bytes_); }

   private:
    template <class Number>
    Record& put(Number number) {
      bytes_.resize(bytes_.size() + sizeof number);
      store_little_endian(number, bytes_.data() + bytes_.size() - sizeof number);
      return *this;
    }

    std::vector<std::byte> bytes_;
  };

  /// What stands for a number that may be too large for its place, and then follows elsewhere.
  [[nodiscard]] static std::uint64_t within(std::uint64_t number, std::uint64_t most) noexcept {
    return number < most ? number : most;
  }

  /// The part that the header before a file and its entry in the directory share.
  static void describe(Record& record, const ZipEntry& entry, bool zip64) {
    constexpr std::uint64_t needs_plain = 20;
    constexpr std::uint64_t is_utf8 = 1 << 11;
    constexpr std::uint64_t first_day = 1 << 5 | 1;  // of January 1980
    bool ascii = true;
    for (const char letter : entry.name) ascii = ascii && static_cast<unsigned char>(letter) < 0x80;
    record.u16(zip64 ? needs_zip64 : needs_plain).u16(ascii ? 0 : is_utf8).u16(entry.method).u16(0).u16(first_day);
    record.u32(entry.crc32).u32(within(entry.compressed_size, max32)).u32(within(entry.size, max32));
    record.u16(entry.name.size());
  }

  static void add_to_directory(Record& directory, const ZipEntry& entry) {
    constexpr std::uint64_t readable_file = std::uint64_t{0100644} << 16;
    Record large;
    for (const std::uint64_t number : {entry.size, entry.compressed_size, entry.header_offset})
      if (number >= max32) large.u64(number);
    const bool zip64 = large.size() > 0;
    directory.u32(0x02014B50).u16(made_by);
    describe(directory, entry, zip64);
    directory.u16(zip64 ? large.size() + 4 : 0).u16(0).u16(0).u16(0).u32(readable_file);
    directory.u32(within(entry.header_offset, max32)).bytes(entry.name);
    if (zip64) directory.u16(zip64_id).u16(large.size()).append(large);
  }

  AtomicFile file_;
  std::vector<ZipEntry> entries_;
  std::set<std::string> names_;
};

}  // namespace dist::io
