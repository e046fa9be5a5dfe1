#pragma once

#include <sys/stat.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/hash.hpp>
#include <dist/core/log.hpp>
#include <dist/hlo/compile_cache.hpp>
#include <dist/hlo/trace.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/writable_file.hpp>

namespace dist::hlo {

DIST_INLINE pjrt::Executable CompileCache::executable(const pjrt::Client& client, std::string_view module,
                                                      std::size_t replicas) {
  const std::string key = key_of(client, module, replicas);
  const std::string path = path_of(key);
  if (std::optional<pjrt::Executable> loaded = load(client, path, key, replicas)) {
    ++loaded_;
    return *std::move(loaded);
  }
  pjrt::Executable executable{client, module, replicas};
  ++compiled_;
  keep(path, key, executable);
  return executable;
}

DIST_INLINE CompileCache::CompileCache(std::string folder) : folder_(std::move(folder)) { io::make_folders(folder_); }

DIST_INLINE std::string CompileCache::key_of(const pjrt::Client& client, std::string_view module,
                                             std::size_t replicas) {
  struct stat plugin {};
  if (::stat(client.api().path().c_str(), &plugin) != 0) plugin = {};  // found on the loader's search path
  const PJRT_Api_Version& version = client.api().get()->pjrt_api_version;
  return concat(client.platform(), " ", client.version(), " PJRT ", version.major_version, ".", version.minor_version,
                " ", client.api().path(), " ", plugin.st_size, " ", plugin.st_mtim.tv_sec, ".", plugin.st_mtim.tv_nsec,
                "\n", client.platform() == "cpu" ? what_cpus_can_do() : "", "\n", replicas, " replicas\n",
                without_locations(module));
}

DIST_INLINE std::string CompileCache::what_cpus_can_do() {
  constexpr std::size_t longest = 1 << 16;
  std::string list(longest, '\0');
  io::FileSource source{"/proc/cpuinfo"};
  list.resize(io::read_full(source, std::as_writable_bytes(std::span{list})));
  list.resize(std::min(list.size(), list.find("\n\n")));  // keeps the first processor only
  std::string lines;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find('\n', begin), list.size());
    const std::string_view line = std::string_view{list}.substr(begin, end - begin);
    for (const std::string_view name : {"model name", "flags", "CPU implementer", "CPU part", "Features"})
      if (line.starts_with(name)) lines += concat(line, "\n");
    begin = end + 1;
  }
  return lines;
}

DIST_INLINE std::string CompileCache::path_of(std::string_view key) const {
  return concat(folder_, "/", ::dist::detail::hash_of(key), ".xla");
}

DIST_INLINE std::optional<pjrt::Executable> CompileCache::load(const pjrt::Client& client, const std::string& path,
                                                               std::string_view key, std::size_t replicas) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return std::nullopt;
  try {
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.st_size));
    io::FileSource source{path};
    bytes.resize(io::read_full(source, bytes));
    const std::span<const std::byte> all{bytes};
    if (all.size() < head_size + key.size()) return std::nullopt;
    const std::span<const std::byte> content = all.subspan(head_size);
    const std::vector<std::byte> head = head_of(key, content.subspan(key.size()));
    if (std::memcmp(head.data(), all.data(), head_size) != 0 ||
        std::memcmp(content.data(), key.data(), key.size()) != 0)
      return std::nullopt;
    return pjrt::Executable::deserialized(client, content.subspan(key.size()), replicas);
  } catch (const FileError&) {
  } catch (const PjrtError&) {
  }
  return std::nullopt;
}

DIST_INLINE void CompileCache::keep(const std::string& path, std::string_view key, const pjrt::Executable& executable) {
  try {
    const std::vector<std::byte> program = executable.serialized();
    io::AtomicFile file{path};
    file.append(head_of(key, program));
    file.append(std::as_bytes(std::span{key}));
    file.append(program);
    file.commit();
  } catch (const Error& error) {
    static ::dist::detail::Warning warning;
    warning.emit(concat("A compiled program was not cached: ", error.what()));
  }
}

DIST_INLINE std::vector<std::byte> CompileCache::head_of(std::string_view key, std::span<const std::byte> program) {
  std::vector<std::byte> head(head_size);
  std::byte* at = head.data();
  std::memcpy(at, format.data(), format.size());
  at += format.size();
  for (const std::size_t size : {key.size(), program.size()}) {
    io::store_little_endian(std::uint64_t{size}, at);
    at += sizeof(std::uint64_t);
  }
  io::store_little_endian(io::crc32c(program, io::crc32c(std::as_bytes(std::span{key}))), at);
  return head;
}

}  // namespace dist::hlo
