/// Writer for safetensors files; io/safetensors.hpp has the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/shape.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/safetensors.hpp>

struct json_t;

namespace dist::io {

/// A tensor to write to a file.
struct SafetensorsTensor {
  std::string name;                     ///< in the header; must be unique
  ElementType type = ElementType::f32;  ///< type of the elements
  Shape shape;                          ///< extents, outermost first
};

/// Writes a safetensors file through an AtomicFile: first the list of tensors, then their elements, in the same order
/// and in parts of any size, without copies.
///
///     dist::io::SafetensorsWriter file{"model.safetensors", {{"kernel", ElementType::f32, {2, 3}}, {"bias", …}}};
///     file.append(kernel.elements());
///     file.append(bias.elements());
///     file.commit();
///
/// The data begin at a multiple of 64 bytes. In a mapped file each tensor is aligned if tensors with larger elements
/// are first.
class SafetensorsWriter {
 public:
  /// Texts by name.
  using Metadata = std::map<std::string, std::string>;

  /// Throws InvalidArgument if a name is used twice, is `__metadata__` or invalid UTF-8, or if the header would be too
  /// long; FileError like AtomicFile. `metadata` are texts to store in the file.
  SafetensorsWriter(std::string path, std::vector<SafetensorsTensor> tensors, const Metadata& metadata = {});

  /// Appends elements, or bytes of elements (std::byte), to the first incomplete tensor. Throws InvalidArgument if they
  /// have another type, or exceed the tensor; FileError like AtomicFile.
  template <class T, std::size_t extent>
  void append(std::span<T, extent> elements) {
    using Element = std::remove_const_t<T>;
    std::optional<ElementType> type;
    if constexpr (!std::is_same_v<Element, std::byte>) type = element_type<Element>;
    append(type, detail::written_bytes(std::span<const Element>{elements}));
  }
  /// Commits the file. Throws InvalidArgument if elements are missing; FileError like AtomicFile.
  void commit();

 private:
  /// Appends elements of type `type`, or of any type.
  void append(std::optional<ElementType> type, std::span<const std::byte> bytes);
  /// Skips tensors without elements.
  void start_next();

  AtomicFile file_;
  std::vector<SafetensorsTensor> tensors_;
  std::size_t current_ = 0;  // index of the incomplete tensor
  std::uint64_t missing_ = 0;
};

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/safetensors_writer.ipp>
#endif
