#pragma once

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include <dist/core/error.hpp>
#include <dist/core/hash.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/file.hpp>
#include <dist/net/error.hpp>
#include <dist/server/registry.hpp>

namespace dist {

namespace detail {

/// A loaded program or shared library.
struct LoadedModule {
  std::uintptr_t base = 0;
  std::string path;
  std::string build_id;  ///< hexadecimal, or empty
};

[[gnu::cold]] DIST_INLINE std::string hexadecimal_of(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string written;
  for (const std::byte byte : bytes) {
    written += digits[std::to_integer<std::size_t>(byte) >> 4];
    written += digits[std::to_integer<std::size_t>(byte) & 15];
  }
  return written;
}

/// Returns the build id from the notes of a module, or an empty string.
[[gnu::cold]] DIST_INLINE std::string build_id_in(std::span<const std::byte> notes, std::size_t alignment) {
  const auto padded = [&](std::size_t size) { return (size + alignment - 1) / alignment * alignment; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof head);
    const std::size_t name = sizeof head, content = name + padded(head.n_namesz);
    const std::size_t end = content + padded(head.n_descsz);
    if (content + head.n_descsz > notes.size()) break;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0)
      return hexadecimal_of(notes.subspan(content, head.n_descsz));
    if (end >= notes.size()) break;
    notes = notes.subspan(end);
  }
  return "";
}

/// Returns the module that contains the address, or the program for address 0. The path is empty if no module contains
/// it.
[[gnu::cold]] DIST_INLINE LoadedModule module_at(std::uintptr_t address) {
  struct Search {
    std::uintptr_t address;
    LoadedModule found;
  } search{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* argument) {
        auto& its = *static_cast<Search*>(argument);
        const std::span<const ElfW(Phdr)> segments{info->dlpi_phdr, info->dlpi_phnum};
        bool is_here = its.address == 0;  // the program is the first module
        for (const ElfW(Phdr) & segment : segments)
          is_here = is_here ||
                    (segment.p_type == PT_LOAD && its.address - info->dlpi_addr - segment.p_vaddr < segment.p_memsz);
        if (!is_here) return 0;
        const bool is_program = info->dlpi_name == nullptr || *info->dlpi_name == '\0';
        its.found = {info->dlpi_addr, is_program ? "/proc/self/exe" : info->dlpi_name, ""};
        for (const ElfW(Phdr) & segment : segments)
          if (segment.p_type == PT_NOTE && its.found.build_id.empty())
            its.found.build_id = build_id_in({reinterpret_cast<const std::byte*>(info->dlpi_addr + segment.p_vaddr),
                                              static_cast<std::size_t>(segment.p_memsz)},
                                             segment.p_align == 8 ? 8 : 4);
        return 1;
      },
      &search);
  return search.found;
}

/// Returns a text such as "crc32c 1a2b3c4d of 123456 bytes".
[[gnu::cold]] DIST_INLINE std::string checksum_of_file(const std::string& path) {
  const io::Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::uint32_t checksum = 0;
  std::uint64_t size = 0;
  std::vector<std::byte> buffer(std::size_t{1} << 16);
  for (ssize_t got = 1; got > 0; size += static_cast<std::uint64_t>(got)) {
    got = file ? read(file.get(), buffer.data(), buffer.size()) : -1;
    if (got < 0)
      throw FileError(path, "cannot be read to identify this program", net::system_text(),
                      "Link the program with a build id (-Wl,--build-id)");
    checksum = io::crc32c(std::span{buffer}.first(static_cast<std::size_t>(got)), checksum);
  }
  return concat("crc32c ", hexadecimal_of(std::as_bytes(std::span{&checksum, 1})), " of ", size, " bytes");
}

[[gnu::cold]] DIST_INLINE std::string identity_of(const LoadedModule& module) {
  return module.build_id.empty() ? checksum_of_file(module.path) : module.build_id;
}

[[gnu::cold]] DIST_INLINE FunctionId code_place_of(std::uintptr_t address) {
  const LoadedModule module = module_at(address);
  if (address == 0 || module.path.empty())
    throw InvalidArgument("A function cannot be identified in other processes",
                          "its address is not in a program or library",
                          "Register functions of the program, not code that is generated at run time");
  static std::mutex mutex;
  static std::map<std::uintptr_t, std::uint64_t> hashes;  // by load address
  const std::lock_guard lock{mutex};
  const auto [known, is_new] = hashes.try_emplace(module.base);
  if (is_new) known->second = hash_of(identity_of(module));
  return {known->second, address - module.base};
}

DIST_INLINE void RegisteredFunctions::add(Function* function) {
  const std::lock_guard lock{mutex_};
  functions_.push_back(function);
}
DIST_INLINE RegisteredFunctions::Function* RegisteredFunctions::find(const FunctionId& number, std::string_view type) {
  const std::lock_guard lock{mutex_};
  for (; placed_ < functions_.size(); ++placed_)
    by_place_.emplace(code_place_of(reinterpret_cast<std::uintptr_t>(functions_[placed_])), functions_[placed_]);
  const auto found = by_place_.find(number);
  if (found == by_place_.end())
    throw ArchiveError(
        "A message names a function that this program does not have",
        concat("no function of type ", type, " is registered at ", number.offset, " of module ", number.module),
        "Start all processes of the job from one build of the program");
  return found->second;
}

}  // namespace detail

DIST_INLINE const std::string& binary_identity() {
  static const std::string identity = detail::identity_of(detail::module_at(0));
  return identity;
}

}  // namespace dist
