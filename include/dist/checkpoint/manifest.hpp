/// The manifest of a checkpoint: the last file to be written, with the list of the tensor files.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist::detail {

class Snapshot;

/// The version of the written format, and the newest that can be read.
inline constexpr std::int64_t checkpoint_version = 1;
inline constexpr std::string_view manifest_name = "manifest.json";

/// A file of tensors of a checkpoint: a safetensors file, whose header has a checksum for each tensor.
struct ShardFile {
  std::string name;  ///< in the folder
  std::uint64_t bytes = 0;
  std::uint32_t header_checksum = 0;  ///< CRC-32C of the bytes before the tensors
};

/// All bytes of a checkpoint have checksums: the last line of the manifest is its checksum, the manifest has the
/// checksums of the file headers, and the headers have the checksums of the tensors.
struct Manifest {
  std::uint64_t id = 0;      ///< of the save that wrote it, part of the file names
  std::uint64_t serial = 0;  ///< greater than the serials of all earlier checkpoints in the parent folder
  std::vector<ShardFile> files;
};

[[nodiscard]] inline std::string manifest_path(const std::string& folder) { return concat(folder, "/", manifest_name); }
/// True if the folder contains a complete checkpoint, that is a manifest.
[[nodiscard]] bool is_checkpoint(const std::string& folder);

[[nodiscard]] std::string hexadecimal(std::uint32_t number);
[[nodiscard]] std::uint32_t checksum_of(std::string_view written);

/// Formats the manifest for its file: a line of JSON, and a line with its checksum.
[[nodiscard]] std::string written(const Manifest& manifest);

/// Parses the text of `written`; `path` is the file for errors. Safe for untrusted input: throws FileError for all
/// other text, such as truncated or changed text, later versions, or file names in other folders.
[[nodiscard]] Manifest parse_manifest(std::string_view path, std::string_view all);

/// Reads the manifest of the checkpoint `folder`. Throws FileError if it is missing or invalid.
[[nodiscard]] Manifest read_manifest(const std::string& folder);

/// Returns the common prefix of the file names of save `id`.
[[nodiscard]] std::string shard_prefix(std::uint64_t id);
/// Returns "data-0000000000001b2c-00001-of-00004.safetensors" for save `id`.
[[nodiscard]] std::string shard_name(std::uint64_t id, std::size_t rank, std::size_t processes);
/// Returns the header key for the checksum of a tensor.
[[nodiscard]] inline std::string checksum_key(std::string_view tensor) { return concat("crc32c ", tensor); }

/// Writes the tensors of a process from a snapshot. Throws FileError.
void write_shard(const std::string& path, const Snapshot& snapshot);
/// Returns the manifest entry of a file in `folder`. Throws FileError.
[[nodiscard]] ShardFile describe_shard(const std::string& folder, std::string name);

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/checkpoint/manifest.ipp>
#endif
