#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/checkpoint/manifest.hpp>
#include <dist/checkpoint/shard.hpp>
#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/file.hpp>
#include <dist/io/random_access.hpp>
#include <dist/io/safetensors.hpp>

namespace dist::detail {

/// A checkpoint that is restored: its tensors by their keys, whatever processes wrote them.
class CheckpointReader {
 public:
  /// Opens the checkpoint in `folder`. Throws FileError where there is none, where a file is missing or of another length,
  /// and where the head of one was changed; what tensors hold is looked at when they are read, or by `verify`.
  explicit CheckpointReader(std::string folder) : folder_(std::move(folder)), manifest_(read_manifest(folder_)) {
    for (const ShardFile& file : manifest_.files) {
      const ShardFile found = describe_shard(folder_, file.name);
      const std::string path = concat(folder_, "/", file.name);
      if (found.bytes != file.bytes)
        throw FileError(path, "is not what the checkpoint was saved with",
                        concat("it has ", found.bytes, " bytes, and ", file.bytes, " were written"), damaged);
      if (found.header_checksum != file.header_checksum)
        throw FileError(path, "is not what the checkpoint was saved with", "the checksum of its header is another one",
                        damaged);
      files_.emplace_back(path);
    }
    for (std::size_t file = 0; file < files_.size(); ++file)
      for (const io::SafetensorsEntry& entry : files_[file].entries()) tensors_.push_back({&entry, file});
    std::sort(tensors_.begin(), tensors_.end(),
              [](const TensorLocation& a, const TensorLocation& b) { return a.entry->name < b.entry->name; });
    for (std::size_t i = 1; i < tensors_.size(); ++i)
      if (tensors_[i - 1].entry->name == tensors_[i].entry->name)
        throw FileError(manifest_path(folder_), "names two files that both have a tensor",
                        quoted(tensors_[i].entry->name), damaged);
  }
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] const Manifest& manifest() const noexcept { return manifest_; }
  /// In alphabetical order.
  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const TensorLocation& each : tensors_) keys.push_back(each.entry->name);
    return keys;
  }
  /// The tensor of that key; nullptr if there is none.
  [[nodiscard]] const io::SafetensorsEntry* find(std::string_view key) const noexcept {
    const TensorLocation* const place = place_of(key);
    return place == nullptr ? nullptr : place->entry;
  }

  /// Reads the tensor of that key, whose elements are converted to `T` where they are of another type. Throws FileError
  /// where there is none, where its bytes were changed, and where a number does not fit.
  template <class T>
  [[nodiscard]] Tensor<T> read(std::string_view key) const {
    const TensorLocation* const place = place_of(key);
    if (place == nullptr)
      throw FileError(folder_, concat("is a checkpoint without ", quoted(key)), io::listed_names(keys()),
                      "Restore it into what it was saved from");
    const io::Safetensors<>& file = files_[place->file];
    if (place->entry->type != io::element_type<T>) {
      verify(*place);
      return file.template read_converted<T>(key);
    }
    Tensor<T> values = file.template read<T>(key);
    require_checksum(*place, io::crc32c(std::as_bytes(std::span<const T>{values.data(), values.size()})));
    return values;
  }

  /// Reads everything, unless it did so before. Throws FileError, naming the file and the tensor, where bytes were changed.
  void verify() {
    if (is_verified_) return;
    for (const TensorLocation& each : tensors_) verify(each);
    is_verified_ = true;
  }

 private:
  static constexpr const char* damaged =
      "Restore another checkpoint: this one was damaged, or its copy is not complete";

  struct TensorLocation {
    const io::SafetensorsEntry* entry;
    std::size_t file;
  };

  [[nodiscard]] const TensorLocation* place_of(std::string_view key) const noexcept {
    const auto found = std::lower_bound(tensors_.begin(), tensors_.end(), key,
                                        [](const TensorLocation& place, std::string_view wanted) {
                                          return std::string_view{place.entry->name} < wanted;
                                        });
    return found == tensors_.end() || found->entry->name != key ? nullptr : &*found;
  }
  void verify(const TensorLocation& place) const {
    const io::RandomAccessFile file{files_[place.file].name()};
    std::vector<std::byte> piece(std::size_t{1} << 20);
    std::uint32_t checksum = 0;
    for (std::uint64_t done = 0; done < place.entry->bytes;) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), place.entry->bytes - done));
      const std::size_t count = file.read_at(place.entry->offset + done, {piece.data(), wanted});
      checksum = io::crc32c({piece.data(), count}, checksum);
      if (count < wanted) break;
      done += count;
    }
    require_checksum(place, checksum);
  }
  void require_checksum(const TensorLocation& place, std::uint32_t checksum) const {
    const auto& checksums = files_[place.file].metadata();
    const auto saved = checksums.find(checksum_key(place.entry->name));
    if (saved == checksums.end() || saved->second != hexadecimal(checksum))
      throw FileError(files_[place.file].name(), "is not what the checkpoint was saved with",
                      concat("the bytes of ", quoted(place.entry->name), " have another checksum"), damaged);
  }

  std::string folder_;
  Manifest manifest_;
  std::vector<io::Safetensors<>> files_;
  std::vector<TensorLocation> tensors_;  // by name
  bool is_verified_ = false;
};

}  // namespace dist::detail
