#pragma once

#include <algorithm>
#include <utility>

#include <dist/checkpoint/checkpoint_reader.hpp>
#include <dist/core/error.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/random_access.hpp>

namespace dist::detail {

DIST_INLINE CheckpointReader::CheckpointReader(std::string folder)
    : folder_(std::move(folder)), manifest_(read_manifest(folder_)) {
  for (const ShardFile& file : manifest_.files) {
    const ShardFile found = describe_shard(folder_, file.name);
    const std::string path = concat(folder_, "/", file.name);
    if (found.bytes != file.bytes)
      throw FileError(path, "differs from the file that was saved",
                      concat("it has ", found.bytes, " bytes, but ", file.bytes, " were written"), damaged);
    if (found.header_checksum != file.header_checksum)
      throw FileError(path, "differs from the file that was saved", "the checksum of its header differs", damaged);
    files_.emplace_back(path);
  }
  for (std::size_t file = 0; file < files_.size(); ++file)
    for (const io::SafetensorsEntry& entry : files_[file].entries()) tensors_.push_back({&entry, file});
  std::sort(tensors_.begin(), tensors_.end(),
            [](const TensorLocation& a, const TensorLocation& b) { return a.entry->name < b.entry->name; });
  for (std::size_t i = 1; i < tensors_.size(); ++i)
    if (tensors_[i - 1].entry->name == tensors_[i].entry->name)
      throw FileError(manifest_path(folder_), "lists two files that contain the same tensor",
                      quoted(tensors_[i].entry->name), damaged);
}

DIST_INLINE std::vector<std::string> CheckpointReader::keys() const {
  std::vector<std::string> keys;
  for (const TensorLocation& each : tensors_) keys.push_back(each.entry->name);
  return keys;
}

DIST_INLINE const io::SafetensorsEntry* CheckpointReader::find(std::string_view key) const noexcept {
  const TensorLocation* const place = place_of(key);
  return place == nullptr ? nullptr : place->entry;
}

DIST_INLINE AnyTensor CheckpointReader::read(std::string_view key, io::ElementType type) const {
  const TensorLocation& place = require_place(key);
  return AnyTensor::filled_by(type, place.entry->shape, [&](std::span<std::byte> room) { read(place, type, room); });
}

DIST_INLINE void CheckpointReader::check(std::string_view key, AnyLeaf& leaf, bool is_optional) const {
  if (is_optional && find(key) == nullptr) return;
  const io::SafetensorsEntry& saved = *require_place(key).entry;
  leaf.require_restorable(saved.shape);
  if (const std::optional<Shape> shape = leaf.shape(); shape && saved.shape != *shape)
    throw ShapeMismatch(concat(quoted(key), " does not have the shape that is saved in the checkpoint ", folder_),
                        concat("its shape is ", to_string(*shape), ", but ", to_string(saved.shape), " was saved"),
                        "Restore it into an object of the saved shape");
  if (leaf.is_number() || saved.type != leaf.type())
    static_cast<void>(read(key, leaf.type()));  // checks that every number fits
}

DIST_INLINE bool CheckpointReader::restore(std::string_view key, AnyLeaf& leaf, const void* scope) const {
  if (find(key) == nullptr) return false;
  leaf.restore(scope, read(key, leaf.type()));
  return true;
}

DIST_INLINE void CheckpointReader::verify() {
  if (is_verified_) return;
  for (const TensorLocation& each : tensors_) verify(each);
  is_verified_ = true;
}

DIST_INLINE const CheckpointReader::TensorLocation* CheckpointReader::place_of(std::string_view key) const noexcept {
  const auto found =
      std::lower_bound(tensors_.begin(), tensors_.end(), key, [](const TensorLocation& place, std::string_view wanted) {
        return std::string_view{place.entry->name} < wanted;
      });
  return found == tensors_.end() || found->entry->name != key ? nullptr : &*found;
}

DIST_INLINE const CheckpointReader::TensorLocation& CheckpointReader::require_place(std::string_view key) const {
  if (const TensorLocation* const place = place_of(key)) return *place;
  throw FileError(folder_, concat("is a checkpoint without ", quoted(key)), io::listed_names(keys()),
                  "Restore it into the parts that were saved");
}

DIST_INLINE void CheckpointReader::read(const TensorLocation& place, io::ElementType type,
                                        std::span<std::byte> to) const {
  const bool converts = place.entry->type != type;
  if (converts) verify(place);
  io::detail::read_safetensors(files_[place.file].bytes(), *place.entry, type, io::detail::convert_read_elements, to);
  if (!converts) require_checksum(place, io::crc32c(to));
}

DIST_INLINE void CheckpointReader::verify(const TensorLocation& place) const {
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

DIST_INLINE void CheckpointReader::require_checksum(const TensorLocation& place, std::uint32_t checksum) const {
  const auto& checksums = files_[place.file].metadata();
  const auto saved = checksums.find(checksum_key(place.entry->name));
  if (saved == checksums.end() || saved->second != hexadecimal(checksum))
    throw FileError(files_[place.file].name(), "differs from the file that was saved",
                    concat("the checksum of ", quoted(place.entry->name), " differs"), damaged);
}

}  // namespace dist::detail
