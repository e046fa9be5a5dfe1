#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/file.hpp>
#include <dist/io/gzip.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/npz.hpp>

namespace dist::io::detail {

[[nodiscard]] constexpr std::uint64_t u16(const std::byte* bytes) { return load_little_endian<std::uint16_t>(bytes); }
[[nodiscard]] constexpr std::uint64_t u32(const std::byte* bytes) { return load_little_endian<std::uint32_t>(bytes); }
[[nodiscard]] constexpr std::uint64_t u64(const std::byte* bytes) { return load_little_endian<std::uint64_t>(bytes); }

[[noreturn]] inline void corrupt(AnyRandomAccess file, std::string_view why) {
  throw FileError(file.name(), "is a corrupt ZIP archive", why, "Download or copy the file again");
}

/// Reads the directory of an archive.
class ZipDirectoryReader {
 public:
  explicit ZipDirectoryReader(AnyRandomAccess file) : file_(file) {}

  [[nodiscard]] std::vector<ZipEntry> read() const { return read_directory(find_directory()); }

 private:
  struct Directory {
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t entries;
  };

  /// Finds the end record, which has the position of the directory. A comment with any text may follow it.
  [[nodiscard]] Directory find_directory() const {
    constexpr std::size_t record_size = 22;
    constexpr std::size_t longest_comment = 65535;
    const auto tail_size =
        static_cast<std::size_t>(std::min<std::uint64_t>(file_.size(), record_size + longest_comment));
    std::vector<std::byte> tail(tail_size);
    const std::uint64_t tail_offset = file_.size() - tail_size;
    if (file_.read_at(tail_offset, tail) < tail_size) corrupt(file_, "it became shorter while it was read");
    for (std::size_t place = tail_size < record_size ? 0 : tail_size - record_size + 1; place-- > 0;) {
      const std::byte* record = tail.data() + place;
      if (u32(record) != 0x06054B50 || u16(record + 20) != tail_size - place - record_size) continue;
      const Directory directory{u32(record + 16), u32(record + 12), u16(record + 10)};
      return find_large_directory(tail_offset + place).value_or(directory);
    }
    throw FileError(file_.name(), "is not a ZIP archive",
                    concat("its ", file_.size(), " bytes have no directory at their end"),
                    "Give an archive that is complete");
  }

  /// Returns the directory in the ZIP64 record, if there is one before the record at `end`.
  [[nodiscard]] std::optional<Directory> find_large_directory(std::uint64_t end) const {
    std::byte locator[20];
    if (end < sizeof locator || file_.read_at(end - sizeof locator, locator) < sizeof locator) return {};
    if (u32(locator) != 0x07064B50) return {};
    std::byte record[56];
    if (file_.read_at(u64(locator + 8), record) < sizeof record || u32(record) != 0x06064B50)
      corrupt(file_, "its ZIP64 record is not where the archive says");
    return Directory{u64(record + 48), u64(record + 40), u64(record + 32)};
  }

  [[nodiscard]] std::vector<ZipEntry> read_directory(const Directory& directory) const {
    constexpr std::uint64_t largest = std::uint64_t{1} << 26;
    if (directory.offset > file_.size() || directory.size > file_.size() - directory.offset)
      corrupt(file_, "its directory reaches beyond its end");
    if (directory.size > largest)
      throw FileError(file_.name(), "has a directory that is too large",
                      concat(directory.size, " bytes, at most ", largest, " are read"), "Split the archive");
    std::vector<std::byte> bytes(static_cast<std::size_t>(directory.size));
    if (file_.read_at(directory.offset, bytes) < bytes.size()) corrupt(file_, "it became shorter while it was read");
    std::vector<ZipEntry> entries;
    std::span<const std::byte> rest{bytes};
    while (!rest.empty()) entries.push_back(take_entry(rest));
    if (entries.size() != directory.entries)
      corrupt(file_,
              concat("its directory has ", entries.size(), " entries, but ", directory.entries, " are announced"));
    return entries;
  }

  [[nodiscard]] ZipEntry take_entry(std::span<const std::byte>& rest) const {
    constexpr std::size_t fixed_size = 46;
    if (rest.size() < fixed_size || u32(rest.data()) != 0x02014B50)
      corrupt(file_, "its directory lacks an expected entry");
    const std::byte* fixed = rest.data();
    const auto name_size = static_cast<std::size_t>(u16(fixed + 28));
    const auto extra_size = static_cast<std::size_t>(u16(fixed + 30));
    const auto comment_size = static_cast<std::size_t>(u16(fixed + 32));
    if (rest.size() - fixed_size < name_size + extra_size + comment_size)
      corrupt(file_, "its directory ends inside an entry");
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

  /// Numbers that exceed 32 bits are stored as all ones, with the value in an extra field.
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

  AnyRandomAccess file_;
};

DIST_INLINE std::vector<ZipEntry> read_zip_directory(AnyRandomAccess file) { return ZipDirectoryReader{file}.read(); }

DIST_INLINE const ZipEntry* find_zip_entry(const std::vector<ZipEntry>& entries, std::string_view name) {
  const auto found =
      std::find_if(entries.rbegin(), entries.rend(), [&](const ZipEntry& entry) { return entry.name == name; });
  return found == entries.rend() ? nullptr : &*found;
}

DIST_INLINE std::uint64_t start_of(AnyRandomAccess file, const ZipEntry& entry) {
  std::byte header[30];
  if (file.read_at(entry.header_offset, header) < sizeof header || u32(header) != 0x04034B50)
    corrupt(file, concat(quoted(entry.name), " is not where the directory says"));
  const std::uint64_t start = entry.header_offset + sizeof header + u16(header + 26) + u16(header + 28);
  if (start > file.size() || entry.compressed_size > file.size() - start)
    corrupt(file, concat(quoted(entry.name), " reaches beyond its end"));
  return start;
}

inline constexpr std::string_view npz_extension = ".npy";

/// A source whose size and checksum must match its archive's directory.
class CheckedSource {
 public:
  CheckedSource(AnySource source, const ZipEntry& entry) : source_(source), entry_(&entry) {}

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) {
    const std::size_t count = source_.read(buffer);
    size_ += count;
    checksum_ = crc32_of(buffer.first(count), checksum_);
    const bool ended = count == 0 && !buffer.empty();
    if (size_ > entry_->size || (ended && size_ != entry_->size))
      corrupt(concat("it has ", size_ > entry_->size ? "more than " : "", size_ > entry_->size ? entry_->size : size_,
                     " bytes, the archive says ", entry_->size));
    if (ended && checksum_ != entry_->crc32)
      corrupt(concat("its CRC-32 is ", checksum_, ", the archive says ", entry_->crc32));
    return count;
  }
  [[nodiscard]] const std::string& name() const noexcept { return source_.name(); }

 private:
  [[noreturn]] void corrupt(std::string_view why) const {
    throw FileError(name(), "is corrupt", why, "Download or copy the file again");
  }

  AnySource source_;
  const ZipEntry* entry_;
  std::uint64_t size_ = 0;
  std::uint32_t checksum_ = 0;
};

DIST_INLINE std::vector<std::string> npz_names(const std::vector<ZipEntry>& entries) {
  std::vector<std::string> names;
  for (const ZipEntry& entry : entries)
    names.push_back(entry.name.ends_with(npz_extension) ? entry.name.substr(0, entry.name.size() - npz_extension.size())
                                                        : entry.name);
  return names;
}

DIST_INLINE ReadArray read_npz(AnyRandomAccess file, const std::vector<ZipEntry>& entries, std::string_view name,
                               ElementType wanted, ConvertRead convert, std::size_t max_elements) {
  constexpr unsigned deflated = 8;
  const ZipEntry* entry = find_zip_entry(entries, concat(name, npz_extension));
  if (entry == nullptr) entry = find_zip_entry(entries, name);
  if (entry == nullptr)
    throw FileError(file.name(), concat("has no array ", quoted(name)), listed_names(npz_names(entries)),
                    "Use one of its names");
  if (entry->encrypted || (entry->method != 0 && entry->method != deflated))
    throw FileError(file.name(), concat("holds ", quoted(name), " in a way that cannot be read"),
                    entry->encrypted ? std::string("it is encrypted") : concat("compression method ", entry->method),
                    "Save it with numpy.savez or numpy.savez_compressed");
  const auto read_checked = [&](AnySource source) {
    CheckedSource checked{source, *entry};
    return read_npy(checked, wanted, convert, max_elements);
  };
  RangeSource<AnyRandomAccess> stored{file, start_of(file, *entry), entry->compressed_size,
                                      concat(file.name(), ":", entry->name)};
  if (entry->method != deflated) return read_checked(stored);
  InflateSource<RangeSource<AnyRandomAccess>> inflated{std::move(stored)};
  return read_checked(inflated);
}

}  // namespace dist::io::detail
