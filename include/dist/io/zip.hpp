/// The directory of ZIP archives, also large ones (ZIP64): what they hold, and where. Decompressing is the reader's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/random_access.hpp>

namespace dist::io {

/// One file of an archive, as the directory at the archive's end describes it.
struct ZipEntry {
  std::string name;
  unsigned method = 0;  // 0 stored, 8 deflated
  bool encrypted = false;
  std::uint32_t crc32 = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header_offset = 0;
};

/// A ZIP archive in one part (APPNOTE 6.3, with ZIP64). Only its directory is read.
template <RandomAccess R>
class ZipArchive {
 public:
  /// Throws FileError for what is not a ZIP archive, is truncated, or whose directory is not sound.
  explicit ZipArchive(R file) : file_(std::move(file)) { read_directory(find_directory()); }

  [[nodiscard]] const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  /// The entry of that name, the last one if several have it; nullptr if none has.
  [[nodiscard]] const ZipEntry* find(std::string_view name) const {
    const auto found =
        std::find_if(entries_.rbegin(), entries_.rend(), [&](const ZipEntry& entry) { return entry.name == name; });
    return found == entries_.rend() ? nullptr : &*found;
  }

  /// The bytes of an entry as the archive holds them, compressed or not. The archive must outlive the source, and stay
  /// where it is. Throws FileError when they are not where the directory says.
  [[nodiscard]] RangeSource<R> open(const ZipEntry& entry) const {
    std::byte header[30];
    if (file_.read_at(entry.header_offset, header) < sizeof header || u32(header) != 0x04034B50)
      corrupt(concat(quoted(entry.name), " is not where the directory says"));
    const std::uint64_t start = entry.header_offset + sizeof header + u16(header + 26) + u16(header + 28);
    if (start > file_.size() || entry.compressed_size > file_.size() - start)
      corrupt(concat(quoted(entry.name), " reaches beyond its end"));
    return {file_, start, entry.compressed_size, concat(name(), ":", entry.name)};
  }

  [[nodiscard]] const std::string& name() const noexcept { return file_.name(); }

 private:
  struct Directory {
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t entries;
  };

  static constexpr std::uint64_t u16(const std::byte* bytes) { return load_little_endian<std::uint16_t>(bytes); }
  static constexpr std::uint64_t u32(const std::byte* bytes) { return load_little_endian<std::uint32_t>(bytes); }
  static constexpr std::uint64_t u64(const std::byte* bytes) { return load_little_endian<std::uint64_t>(bytes); }

  [[noreturn]] void corrupt(std::string_view why) const {
    throw FileError(name(), "is a corrupt ZIP archive", why, "Download or copy the file again");
  }

  /// The record that ends the archive says where the directory is; a comment of any text may follow it.
  [[nodiscard]] Directory find_directory() const {
    constexpr std::size_t record_size = 22;
    constexpr std::size_t longest_comment = 65535;
    const auto tail_size =
        static_cast<std::size_t>(std::min<std::uint64_t>(file_.size(), record_size + longest_comment));
    std::vector<std::byte> tail(tail_size);
    const std::uint64_t tail_offset = file_.size() - tail_size;
    if (file_.read_at(tail_offset, tail) < tail_size) corrupt("it became shorter while it was read");
    for (std::size_t place = tail_size < record_size ? 0 : tail_size - record_size + 1; place-- > 0;) {
      const std::byte* record = tail.data() + place;
      if (u32(record) != 0x06054B50 || u16(record + 20) != tail_size - place - record_size) continue;
      const Directory directory{u32(record + 16), u32(record + 12), u16(record + 10)};
      return find_large_directory(tail_offset + place).value_or(directory);
    }
    throw FileError(name(), "is not a ZIP archive",
                    concat("its ", file_.size(), " bytes have no directory at their end"),
                    "Give an archive that is complete");
  }

  /// What the ZIP64 record says, if there is one before the record at `end`.
  [[nodiscard]] std::optional<Directory> find_large_directory(std::uint64_t end) const {
    std::byte locator[20];
    if (end < sizeof locator || file_.read_at(end - sizeof locator, locator) < sizeof locator) return {};
    if (u32(locator) != 0x07064B50) return {};
    std::byte record[56];
    if (file_.read_at(u64(locator + 8), record) < sizeof record || u32(record) != 0x06064B50)
      corrupt("its ZIP64 record is not where the archive says");
    return Directory{u64(record + 48), u64(record + 40), u64(record + 32)};
  }

  void read_directory(const Directory& directory) {
    constexpr std::uint64_t largest = std::uint64_t{1} << 26;
    if (directory.offset > file_.size() || directory.size > file_.size() - directory.offset)
      corrupt("its directory reaches beyond its end");
    if (directory.size > largest)
      throw FileError(name(), "has a directory that is too large",
                      concat(directory.size, " bytes, at most ", largest, " are read"), "Divide the archive");
    std::vector<std::byte> bytes(static_cast<std::size_t>(directory.size));
    if (file_.read_at(directory.offset, bytes) < bytes.size()) corrupt("it became shorter while it was read");
    std::span<const std::byte> rest{bytes};
    while (!rest.empty()) entries_.push_back(take_entry(rest));
    if (entries_.size() != directory.entries)
      corrupt(concat("its directory has ", entries_.size(), " entries, but ", directory.entries, " are announced"));
  }

  [[nodiscard]] ZipEntry take_entry(std::span<const std::byte>& rest) const {
    constexpr std::size_t fixed_size = 46;
    if (rest.size() < fixed_size || u32(rest.data()) != 0x02014B50)
      corrupt("its directory has no entry where one should be");
    const std::byte* fixed = rest.data();
    const auto name_size = static_cast<std::size_t>(u16(fixed + 28));
    const auto extra_size = static_cast<std::size_t>(u16(fixed + 30));
    const auto comment_size = static_cast<std::size_t>(u16(fixed + 32));
    if (rest.size() - fixed_size < name_size + extra_size + comment_size) corrupt("its directory ends inside an entry");
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(fixed + fixed_size), name_size);
    entry.encrypted = (u16(fixed + 8) & 1) != 0;
    entry.method = static_cast<unsigned>(u16(fixed + 10));
    entry.crc32 = static_cast<std::uint32_t>(u32(fixed + 16));
    entry.compressed_size = u32(fixed + 20);
    entry.size = u32(fixed + 24);
    entry.header_offset = u32(fixed + 42);
    take_large_sizes(entry, rest.subspan(fixed_size + name_size, extra_size));
    rest = rest.subspan(fixed_size + name_size + extra_size + comment_size);
    return entry;
  }

  /// Numbers that do not fit into 32 bits are all ones there, and follow in an extra field.
  void take_large_sizes(ZipEntry& entry, std::span<const std::byte> extra) const {
    constexpr std::uint64_t elsewhere = 0xFFFFFFFF;
    while (extra.size() >= 4) {
      const std::uint64_t id = u16(extra.data());
      const std::uint64_t size = u16(extra.data() + 2);
      if (extra.size() - 4 < size) return;
      std::span<const std::byte> field = extra.subspan(4, static_cast<std::size_t>(size));
      extra = extra.subspan(4 + static_cast<std::size_t>(size));
      if (id != 1) continue;
      for (std::uint64_t* number : {&entry.size, &entry.compressed_size, &entry.header_offset})
        if (*number == elsewhere && field.size() >= 8) {
          *number = u64(field.data());
          field = field.subspan(8);
        }
    }
  }

  R file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace dist::io
