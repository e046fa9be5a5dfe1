#pragma once

#include <span>

#include <dist/checkpoint/manifest.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/file.hpp>
#include <dist/io/json.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/random_access.hpp>
#include <dist/io/safetensors.hpp>
#include <dist/io/safetensors_writer.hpp>

namespace dist::detail {

DIST_INLINE bool is_checkpoint(const std::string& folder) { return ::access(manifest_path(folder).c_str(), F_OK) == 0; }

DIST_INLINE std::string hexadecimal(std::uint32_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown(8, '0');
  for (std::size_t i = 0; i < shown.size(); ++i) shown[i] = digits[number >> (28 - 4 * i) & 0xFU];
  return shown;
}

DIST_INLINE std::uint32_t checksum_of(std::string_view written) {
  return io::crc32c(std::as_bytes(std::span<const char>{written.data(), written.size()}));
}

DIST_INLINE std::string written(const Manifest& manifest) {
  const auto number = [](std::uint64_t value) { return json_integer(static_cast<json_int_t>(value)); };
  const io::Json json{json_object()};
  json_object_set_new(json.get(), "format", json_string("dist checkpoint"));
  json_object_set_new(json.get(), "version", json_integer(checkpoint_version));
  json_object_set_new(json.get(), "id", number(manifest.id));
  json_object_set_new(json.get(), "serial", number(manifest.serial));
  json_t* const files = json_array();
  json_object_set_new(json.get(), "files", files);
  for (const ShardFile& file : manifest.files) {
    json_t* const entry = json_object();
    json_array_append_new(files, entry);
    json_object_set_new(entry, "name", json_string(file.name.c_str()));
    json_object_set_new(entry, "bytes", number(file.bytes));
    json_object_set_new(entry, "header_crc32c", json_string(hexadecimal(file.header_checksum).c_str()));
  }
  const std::string line = io::written_json(json.get());
  return concat(line, "\ncrc32c ", hexadecimal(checksum_of(line)), "\n");
}

inline constexpr std::size_t manifest_max_bytes = std::size_t{64} << 20;  // about half a million files

class ManifestReader {
 public:
  explicit ManifestReader(std::string_view path) : path_(path) {}

  [[nodiscard]] Manifest read(std::string_view all) const {
    const std::size_t end = all.find('\n');
    if (end == std::string_view::npos) refuse("it has no line break");
    const std::string_view line = all.substr(0, end);
    if (all.substr(end + 1) != concat("crc32c ", hexadecimal(checksum_of(line)), "\n"))
      refuse("its last line is not the checksum of its first line");
    const io::Json json = io::parse_json(line, manifest_max_bytes, [&](std::string_view why) { refuse(why); });
    if (string_of(json.get(), "format") != "dist checkpoint") refuse("it has another format");
    const std::uint64_t version = number_of(json.get(), "version");
    if (version != static_cast<std::uint64_t>(checkpoint_version))
      throw FileError(path_, "has another version of the checkpoint format",
                      concat("it has version ", version, ", but this program reads version ", checkpoint_version),
                      "Restore it with the version of the library that saved it, or a later one");
    Manifest manifest{.id = number_of(json.get(), "id"), .serial = number_of(json.get(), "serial"), .files = {}};
    const json_t* const files = json_object_get(json.get(), "files");
    if (!json_is_array(files)) refuse("it has no list of files");
    for (std::size_t i = 0; i < json_array_size(files); ++i)
      manifest.files.push_back(file_of(json_array_get(files, i)));
    return manifest;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw FileError(path_, "is not a valid checkpoint manifest", why,
                    "Restore another checkpoint: this one is damaged, or its copy is incomplete");
  }
  [[nodiscard]] std::string_view string_of(const json_t* json, const char* key) const {
    const json_t* const value = json_object_get(json, key);
    if (!json_is_string(value)) refuse(concat("it has no string '", key, "'"));
    return io::string_in(value);
  }
  [[nodiscard]] std::uint64_t number_of(const json_t* json, const char* key) const {
    const json_t* const value = json_object_get(json, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) refuse(concat("it has no number '", key, "'"));
    return static_cast<std::uint64_t>(json_integer_value(value));
  }
  [[nodiscard]] ShardFile file_of(const json_t* json) const {
    ShardFile file{.name = std::string{string_of(json, "name")}, .bytes = number_of(json, "bytes")};
    if (file.name.empty() || file.name[0] == '.' || file.name.find('/') != std::string::npos)
      refuse(concat("it names a file that is not in its folder: ", quoted(file.name)));
    const std::string_view checksum = string_of(json, "header_crc32c");
    if (checksum.size() != 8) refuse("a checksum does not have eight digits");
    for (const char digit : checksum) {
      const std::size_t value = std::string_view{"0123456789abcdef"}.find(digit);
      if (value == std::string_view::npos) refuse("a checksum has characters other than hexadecimal digits");
      file.header_checksum = file.header_checksum << 4 | static_cast<std::uint32_t>(value);
    }
    return file;
  }

  std::string_view path_;
};

DIST_INLINE Manifest parse_manifest(std::string_view path, std::string_view all) {
  return ManifestReader{path}.read(all);
}

DIST_INLINE Manifest read_manifest(const std::string& folder) {
  if (!is_checkpoint(folder))
    throw FileError(
        folder, "is not a checkpoint", concat("it has no ", manifest_name),
        "Use the path that was passed to Checkpoint::save; latest_checkpoint finds the newest one in a folder");
  const io::RandomAccessFile file{manifest_path(folder)};
  return parse_manifest(file.name(), io::read_text(file, manifest_max_bytes + 1));
}

DIST_INLINE std::string shard_prefix(std::uint64_t id) {
  return concat("data-", hexadecimal(static_cast<std::uint32_t>(id >> 32)), hexadecimal(static_cast<std::uint32_t>(id)),
                "-");
}

DIST_INLINE std::string shard_name(std::uint64_t id, std::size_t rank, std::size_t processes) {
  const auto five_digits = [](std::size_t number) {
    const std::string digits = concat(number);
    return std::string(5 - std::min<std::size_t>(digits.size(), 5), '0') + digits;
  };
  return concat(shard_prefix(id), five_digits(rank), "-of-", five_digits(processes), ".safetensors");
}

DIST_INLINE void write_shard(const std::string& path, const Snapshot& snapshot) {
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

DIST_INLINE ShardFile describe_shard(const std::string& folder, std::string name) {
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
