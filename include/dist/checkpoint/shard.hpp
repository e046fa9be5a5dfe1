/// The files of tensors of a checkpoint, one of each process: safetensors files that say the checksum of each tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/checkpoint/manifest.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/random_access.hpp>
#include <dist/io/safetensors.hpp>
#include <dist/io/safetensors_writer.hpp>

namespace dist::detail {

/// What the names of all files of the save `id` begin with.
[[nodiscard]] inline std::string shard_prefix(std::uint64_t id) {
  return concat("data-", hexadecimal(static_cast<std::uint32_t>(id >> 32)), hexadecimal(static_cast<std::uint32_t>(id)),
                "-");
}
/// "data-0000000000001b2c-00001-of-00004.safetensors", of the save `id`.
[[nodiscard]] inline std::string shard_name(std::uint64_t id, std::size_t rank, std::size_t processes) {
  const auto five_digits = [](std::size_t number) {
    const std::string digits = concat(number);
    return std::string(5 - std::min<std::size_t>(digits.size(), 5), '0') + digits;
  };
  return concat(shard_prefix(id), five_digits(rank), "-of-", five_digits(processes), ".safetensors");
}
/// Under which the header of a file has the checksum of a tensor.
[[nodiscard]] inline std::string checksum_key(std::string_view tensor) { return concat("crc32c ", tensor); }

/// Writes what a process has of a snapshot. Throws FileError.
inline void write_shard(const std::string& path, const Snapshot& snapshot) {
  std::vector<io::SafetensorsTensor> tensors;
  std::map<std::string, std::string> checksums;
  for (const SavedTensor& tensor : snapshot.local_tensors()) {
    tensors.push_back({tensor.key, tensor.type, tensor.shape});
    checksums.emplace(checksum_key(tensor.key), hexadecimal(io::crc32c(tensor.bytes)));
  }
  io::SafetensorsWriter file{path, std::move(tensors), checksums};
  for (const SavedTensor& tensor : snapshot.local_tensors()) file.append(tensor.bytes);
  file.commit();
}

/// What the manifest says of the file of that name in `folder`. Throws FileError.
[[nodiscard]] inline ShardFile describe_shard(const std::string& folder, std::string name) {
  const io::RandomAccessFile file{concat(folder, "/", name)};
  std::byte length[8] = {};
  std::uint32_t checksum = io::crc32c({length, file.read_at(0, length)});
  const auto header_bytes = io::load_little_endian<std::uint64_t>(length);
  std::vector<std::byte> header(
      static_cast<std::size_t>(std::min({header_bytes, file.size(), std::uint64_t{io::safetensors_max_header_bytes}})));
  checksum = io::crc32c({header.data(), file.read_at(sizeof length, header)}, checksum);
  return {.name = std::move(name), .bytes = file.size(), .header_checksum = checksum};
}

}  // namespace dist::detail
