/// Writes safetensors files, which `io/safetensors.hpp` reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/shape.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/json.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/safetensors.hpp>

namespace dist::io {

/// A tensor that a file is to hold.
struct SafetensorsTensor {
  std::string name;
  ElementType type = ElementType::f32;
  Shape shape;
};

/// A safetensors file, written through an AtomicFile: first what its tensors are, then their elements, in the same order
/// and in pieces of any size, of which nothing is kept.
///
///     dist::io::SafetensorsWriter file{"model.safetensors", {{"kernel", ElementType::f32, {2, 3}}, {"bias", …}}};
///     file.append(kernel.elements());
///     file.append(bias.elements());
///     file.commit();
///
/// The bytes behind the header begin at a multiple of 64. A reader that maps the file finds each tensor aligned where those
/// of larger elements come first.
class SafetensorsWriter {
 public:
  using Metadata = std::map<std::string, std::string>;

  /// Throws InvalidArgument for a name that comes twice, is "__metadata__" or no UTF-8, and for so many tensors that their
  /// header were too long to read; FileError as AtomicFile does. `metadata` are texts that the file carries.
  SafetensorsWriter(std::string path, std::vector<SafetensorsTensor> tensors, const Metadata& metadata = {})
      : file_(std::move(path)), tensors_(std::move(tensors)) {
    std::string header = written_header(metadata);
    constexpr std::size_t alignment = 64;
    const std::size_t unpadded = detail::safetensors_length_bytes + header.size();
    header.append((alignment - unpadded % alignment) % alignment, ' ');
    if (header.size() > safetensors_max_header_bytes)
      refuse("has too many tensors",
             concat("their header has ", header.size(), " bytes, at most ", safetensors_max_header_bytes, " are read"),
             "Divide them among several files");
    std::byte length[detail::safetensors_length_bytes];
    store_little_endian(std::uint64_t{header.size()}, length);
    file_.append(length);
    file_.append(std::as_bytes(std::span<const char>{header.data(), header.size()}));
    start_next();
  }

  /// Appends elements, or bytes of elements (std::byte), to those of the tensor that is not complete yet: its next ones.
  /// Throws InvalidArgument when they are of another type, or more than it lacks; FileError as AtomicFile does.
  template <class T, std::size_t extent>
  void append(std::span<T, extent> elements) {
    using Element = std::remove_const_t<T>;
    if (elements.empty()) return;
    if (current_ == tensors_.size())
      refuse("has no room for more elements", concat("its ", tensors_.size(), " tensors are complete"),
             "Name each tensor when the writer is made");
    const SafetensorsTensor& tensor = tensors_[current_];
    if constexpr (!std::is_same_v<Element, std::byte>)
      if (tensor.type != element_type<Element>)
        refuse(concat("was given elements of another type for ", quoted(tensor.name)),
               concat("they are ", dtype_name<Element>, ", the tensor was announced as ", to_string(tensor.type)),
               "Append what was announced, in that order");
    if (elements.size_bytes() > missing_)
      refuse(concat("was given too many elements for ", quoted(tensor.name)),
             concat(elements.size_bytes(), " bytes, of which it lacks ", missing_), "Append each tensor by itself");
    file_.append(detail::written_bytes(std::span<const Element>{elements}));
    missing_ -= elements.size_bytes();
    if (missing_ == 0) {
      ++current_;
      start_next();
    }
  }
  /// Makes it the content of the file. Throws InvalidArgument when elements are missing; FileError as AtomicFile does.
  void commit() {
    if (current_ < tensors_.size())
      refuse(concat("lacks elements of ", quoted(tensors_[current_].name)),
             concat(missing_, " bytes of it, and ", tensors_.size() - current_ - 1, " more tensors"),
             "Append the elements of every tensor before commit");
    file_.commit();
  }

 private:
  [[noreturn]] void refuse(std::string_view problem, std::string_view why, std::string_view suggestion) const {
    throw InvalidArgument(concat("The safetensors file '", file_.path(), "' ", problem), why, suggestion);
  }

  [[nodiscard]] static std::uint64_t bytes_in(const SafetensorsTensor& tensor) {
    return std::uint64_t{tensor.shape.elements()} * bytes_of(tensor.type);
  }

  [[nodiscard]] std::string written_header(const Metadata& metadata) const {
    const Json header{json_object()};
    if (!metadata.empty()) {
      json_t* const texts = json_object();
      json_object_set_new(header.get(), detail::safetensors_metadata_key, texts);
      for (const auto& [key, value] : metadata) add(texts, key, json_stringn(value.data(), value.size()));
    }
    std::uint64_t place = 0;
    for (const SafetensorsTensor& tensor : tensors_) {
      if (tensor.name == detail::safetensors_metadata_key ||
          json_object_get(header.get(), tensor.name.c_str()) != nullptr)
        refuse(concat("cannot have a tensor of the name ", quoted(tensor.name)),
               "another has it, or the format keeps it", "Give each tensor a name of its own");
      json_t* const entry = json_object();
      add(header.get(), tensor.name, entry);
      json_object_set_new(entry, "dtype", json_string(detail::safetensors_dtype(tensor.type).c_str()));
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

  /// Puts `value`, which it owns, into an object.
  void add(json_t* object, const std::string& key, json_t* value) const {
    const bool has_null = key.find('\0') != std::string::npos;
    if (has_null) json_decref(value);
    if (has_null || json_object_set_new(object, key.c_str(), value) != 0)
      refuse(concat("cannot hold ", quoted(key)),
             "the name, or the text under it, is no UTF-8 or has the character NUL", "Use names and texts in UTF-8");
  }

  /// Skips tensors without elements.
  void start_next() {
    while (current_ < tensors_.size() && (missing_ = bytes_in(tensors_[current_])) == 0) ++current_;
  }

  AtomicFile file_;
  std::vector<SafetensorsTensor> tensors_;
  std::size_t current_ = 0;  // the tensor that is not complete
  std::uint64_t missing_ = 0;
};

}  // namespace dist::io
