#pragma once

#include <cstdint>

#include <dist/core/error.hpp>
#include <dist/io/json.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/safetensors_writer.hpp>

namespace dist::io::detail {

[[noreturn]] inline void refuse_tensors(const std::string& path, std::string_view problem, std::string_view why,
                                        std::string_view suggestion) {
  throw InvalidArgument(concat("The safetensors file '", path, "' ", problem), why, suggestion);
}

[[nodiscard]] inline std::uint64_t bytes_in(const SafetensorsTensor& tensor) {
  return std::uint64_t{tensor.shape.elements()} * bytes_of(tensor.type);
}

/// Adds `value` to an object. Takes ownership.
inline void add_member(const std::string& path, json_t* object, const std::string& key, json_t* value) {
  const bool has_null = key.find('\0') != std::string::npos;
  if (has_null) json_decref(value);
  if (has_null || json_object_set_new(object, key.c_str(), value) != 0)
    refuse_tensors(path, concat("cannot hold ", quoted(key)),
                   "the name or its text is not valid UTF-8, or contains the character NUL",
                   "Use names and texts in UTF-8");
}

[[nodiscard]] inline std::string written_header(const std::string& path, const std::vector<SafetensorsTensor>& tensors,
                                                const SafetensorsWriter::Metadata& metadata) {
  const Json header{json_object()};
  if (!metadata.empty()) {
    json_t* const texts = json_object();
    json_object_set_new(header.get(), safetensors_metadata_key, texts);
    for (const auto& [key, value] : metadata) add_member(path, texts, key, json_stringn(value.data(), value.size()));
  }
  std::uint64_t place = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.name == safetensors_metadata_key || json_object_get(header.get(), tensor.name.c_str()) != nullptr)
      refuse_tensors(path, concat("cannot have a tensor named ", quoted(tensor.name)),
                     "another tensor has this name, or the format reserves it", "Give each tensor its own name");
    json_t* const entry = json_object();
    add_member(path, header.get(), tensor.name, entry);
    json_object_set_new(entry, "dtype", json_string(safetensors_dtype(tensor.type).c_str()));
    json_t* const shape = json_array();
    json_object_set_new(entry, "shape", shape);
    for (const std::size_t extent : tensor.shape.extents())
      json_array_append_new(shape, json_integer(static_cast<json_int_t>(extent)));
    json_t* const offsets = json_array();
    json_object_set_new(entry, "data_offsets", offsets);
    json_array_append_new(offsets, json_integer(static_cast<json_int_t>(place)));
    place += bytes_in(tensor);
    json_array_append_new(offsets, json_integer(static_cast<json_int_t>(place)));
  }
  return written_json(header.get());
}

}  // namespace dist::io::detail

namespace dist::io {

DIST_INLINE SafetensorsWriter::SafetensorsWriter(std::string path, std::vector<SafetensorsTensor> tensors,
                                                 const Metadata& metadata)
    : file_(std::move(path)), tensors_(std::move(tensors)) {
  std::string header = detail::written_header(file_.path(), tensors_, metadata);
  constexpr std::size_t alignment = 64;
  const std::size_t unpadded = detail::safetensors_length_bytes + header.size();
  header.append((alignment - unpadded % alignment) % alignment, ' ');
  if (header.size() > safetensors_max_header_bytes)
    detail::refuse_tensors(
        file_.path(), "has too many tensors",
        concat("their header has ", header.size(), " bytes, at most ", safetensors_max_header_bytes, " are read"),
        "Divide them among several files");
  std::byte length[detail::safetensors_length_bytes];
  store_little_endian(std::uint64_t{header.size()}, length);
  file_.append(length);
  file_.append(std::as_bytes(std::span<const char>{header.data(), header.size()}));
  start_next();
}

DIST_INLINE void SafetensorsWriter::append(std::optional<ElementType> type, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (current_ == tensors_.size())
    detail::refuse_tensors(file_.path(), "has no room for more elements",
                           concat("its ", tensors_.size(), " tensors are complete"),
                           "Name each tensor when you create the writer");
  const SafetensorsTensor& tensor = tensors_[current_];
  if (type && tensor.type != *type)
    detail::refuse_tensors(
        file_.path(), concat("received elements of another type for ", quoted(tensor.name)),
        concat("they are ", to_string(*type), ", the tensor was declared as ", to_string(tensor.type)),
        "Append the declared elements, in their order");
  if (bytes.size() > missing_)
    detail::refuse_tensors(file_.path(), concat("received too many elements for ", quoted(tensor.name)),
                           concat(bytes.size(), " bytes, but the number of missing bytes is ", missing_),
                           "Append each tensor separately");
  file_.append(bytes);
  missing_ -= bytes.size();
  if (missing_ == 0) {
    ++current_;
    start_next();
  }
}

DIST_INLINE void SafetensorsWriter::commit() {
  if (current_ < tensors_.size())
    detail::refuse_tensors(
        file_.path(), concat("lacks elements of ", quoted(tensors_[current_].name)),
        concat(missing_, " bytes of it are missing, and ", tensors_.size() - current_ - 1, " more tensors"),
        "Append the elements of every tensor before commit");
  file_.commit();
}

DIST_INLINE void SafetensorsWriter::start_next() {
  while (current_ < tensors_.size() && (missing_ = detail::bytes_in(tensors_[current_])) == 0) ++current_;
}

}  // namespace dist::io
