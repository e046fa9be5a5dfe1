/// Reader for safetensors files: the length of the header (64 bits, little-endian), the header in JSON with the type,
/// shape and position of each tensor, then the elements, little-endian and row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/random_access.hpp>

namespace dist::io {

/// The maximum length of a header in the format.
inline constexpr std::size_t safetensors_max_header_bytes = 100'000'000;

/// A tensor of a file, as described by the header.
struct SafetensorsEntry {
  std::string name;                 ///< as in the header
  std::string dtype;                ///< in the format's notation, such as "F32"
  std::optional<ElementType> type;  ///< empty if this library lacks the type, such as "F8_E4M3"
  Shape shape;                      ///< extents, outermost first
  std::uint64_t offset = 0;         ///< of its bytes, from the beginning of the file
  std::uint64_t bytes = 0;          ///< number of its bytes
};

namespace detail {

inline constexpr std::size_t safetensors_length_bytes = 8;
inline constexpr const char* safetensors_metadata_key = "__metadata__";

/// Returns the format's name of a type: "BF16".
[[nodiscard]] std::string safetensors_dtype(ElementType type);

/// The content of a file's header.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::vector<std::size_t> by_name;
  std::map<std::string, std::string> metadata;

  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const;
  /// Throws FileError, for a file called `file`, if the tensor does not exist.
  [[nodiscard]] const SafetensorsEntry& entry(const std::string& file, std::string_view name) const;
};
[[nodiscard]] SafetensorsHeader read_safetensors_header(AnyRandomAccess file, std::size_t max_header_bytes);

/// Reads a tensor into `to`, as elements of type `wanted`. Throws FileError if it has another type and `convert` is
/// nullptr.
void read_safetensors(AnyRandomAccess file, const SafetensorsEntry& entry, ElementType wanted, ConvertRead convert,
                      std::span<std::byte> to);

}  // namespace detail

/// The tensors of a safetensors file by name:
///
///     const dist::io::Safetensors weights{"model.safetensors"};
///     const dist::Tensor<float> kernel = weights.read_converted<float>("dense_1/kernel");
///
/// The constructor reads only the header. It is fully validated: every byte after it must belong to exactly one tensor,
/// and match its type and shape.
template <RandomAccess R = RandomAccessFile>
class Safetensors {
 public:
  /// Throws FileError if the file is missing, malformed, or has a header of more than `max_header_bytes`. Parsing takes
  /// twenty times the bytes of the header, eighty times if it is malicious. For untrusted files, one megabyte is enough
  /// for thousands of tensors.
  explicit Safetensors(std::string path, std::size_t max_header_bytes = safetensors_max_header_bytes)
      : Safetensors(R(std::move(path)), max_header_bytes) {}
  /// Reads the header of a file that was opened before.
  explicit Safetensors(R file, std::size_t max_header_bytes = safetensors_max_header_bytes)
      : file_(std::move(file)), header_(detail::read_safetensors_header(file_, max_header_bytes)) {}

  /// The tensors, in the order of their bytes.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const noexcept { return header_.entries; }
  /// The texts of the header under `__metadata__`.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return header_.metadata; }
  [[nodiscard]] const std::string& name() const noexcept { return file_.name(); }

  /// Returns the tensor with this name, or nullptr.
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const { return header_.find(name); }
  /// Returns the tensor with this name. Throws FileError, listing the first ten names, if it does not exist.
  [[nodiscard]] const SafetensorsEntry& entry(std::string_view name) const { return header_.entry(this->name(), name); }

  /// All bytes of the file.
  [[nodiscard]] const R& bytes() const noexcept { return file_; }
  /// Returns the bytes of a tensor, little-endian. The file must outlive the source, and not move.
  [[nodiscard]] RangeSource<R> open(const SafetensorsEntry& entry) const {
    return {file_, entry.offset, entry.bytes, concat(name(), ":", entry.name)};
  }

  /// Reads a tensor. Throws FileError like `entry`, or if it has another type.
  template <class T>
  [[nodiscard]] Tensor<T> read(std::string_view name) const {
    Tensor<T> tensor{entry(name).shape};
    read(name, tensor.elements());
    return tensor;
  }
  /// Reads a tensor into `to`. Throws FileError like `entry`, or if it has another type or number of elements.
  template <class T>
  void read(std::string_view name, std::span<T> to) const {
    detail::read_safetensors(file_, entry(name), element_type<T>, nullptr, std::as_writable_bytes(to));
  }

  /// Reads a tensor of any type, and converts its elements to `T` like `convert_elements`. Throws FileError like
  /// `entry`, if this library lacks the type, or if an element is not representable as `T`.
  template <class T>
  [[nodiscard]] Tensor<T> read_converted(std::string_view name) const {
    Tensor<T> tensor{entry(name).shape};
    read_converted(name, tensor.elements());
    return tensor;
  }
  /// Reads a tensor of any type into `to`, and converts its elements. Throws FileError also if `to` has another number
  /// of elements.
  template <class T>
  void read_converted(std::string_view name, std::span<T> to) const {
    detail::read_safetensors(file_, entry(name), element_type<T>, detail::convert_read_elements,
                             std::as_writable_bytes(to));
  }

  /// Reads a tensor of any type, and converts its elements to a run-time type.
  [[nodiscard]] detail::AnyTensor read_converted(std::string_view name, ElementType type) const {
    const SafetensorsEntry& found = entry(name);
    return detail::AnyTensor::filled_by(type, found.shape, [&](std::span<std::byte> room) {
      detail::read_safetensors(file_, found, type, detail::convert_read_elements, room);
    });
  }

 private:
  R file_;
  detail::SafetensorsHeader header_;
};
/// Deduces a file.
Safetensors(std::string, std::size_t = 0)->Safetensors<RandomAccessFile>;
/// Deduces a file.
Safetensors(const char*, std::size_t = 0)->Safetensors<RandomAccessFile>;
/// Deduces the type of the bytes.
template <RandomAccess R>
Safetensors(R, std::size_t = 0) -> Safetensors<R>;

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/safetensors.ipp>
#endif
