#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/checkpoint/leaf.hpp>
#include <dist/checkpoint/manifest.hpp>
#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/file.hpp>
#include <dist/io/safetensors.hpp>

namespace dist::detail {

/// Reads the tensors of a checkpoint by key, from the files of all processes.
class CheckpointReader {
 public:
  /// Opens the checkpoint in `folder`. Throws FileError if it does not exist, a file is missing or has the wrong
  /// length, or a header was changed. Tensors are verified when they are read, or by `verify`.
  explicit CheckpointReader(std::string folder);
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] const Manifest& manifest() const noexcept { return manifest_; }
  /// In alphabetical order.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// Returns the tensor with that key; nullptr if it does not exist.
  [[nodiscard]] const io::SafetensorsEntry* find(std::string_view key) const noexcept;

  /// Reads the tensor with that key, and converts its elements to `T`. Throws FileError if it does not exist, its bytes
  /// were changed, or a number does not fit.
  template <class T>
  [[nodiscard]] Tensor<T> read(std::string_view key) const {
    const TensorLocation& place = require_place(key);
    Tensor<T> values{place.entry->shape};
    read(place, io::element_type<T>, std::as_writable_bytes(values.elements()));
    return values;
  }

  /// Reads a tensor as elements of a type that is chosen at run time.
  [[nodiscard]] AnyTensor read(std::string_view key, io::ElementType type) const;

  /// Throws the errors of Checkpoint::restore if a leaf cannot be restored.
  void check(std::string_view key, AnyLeaf& leaf, bool is_optional) const;
  /// Restores a leaf if its tensor exists. Returns true if it does. A collective call of the processes.
  bool restore(std::string_view key, AnyLeaf& leaf, const void* scope) const;

  /// Verifies all bytes, once. Throws FileError with the file and the tensor if bytes were changed.
  void verify();

 private:
  static constexpr const char* damaged = "Restore another checkpoint: this one is damaged, or its copy is incomplete";

  struct TensorLocation {
    const io::SafetensorsEntry* entry;
    std::size_t file;
  };

  [[nodiscard]] const TensorLocation* place_of(std::string_view key) const noexcept;
  [[nodiscard]] const TensorLocation& require_place(std::string_view key) const;
  void read(const TensorLocation& place, io::ElementType type, std::span<std::byte> to) const;
  void verify(const TensorLocation& place) const;
  void require_checksum(const TensorLocation& place, std::uint32_t checksum) const;

  std::string folder_;
  Manifest manifest_;
  std::vector<io::Safetensors<>> files_;
  std::vector<TensorLocation> tensors_;  // sorted by name
  bool is_verified_ = false;
};

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/checkpoint/checkpoint_reader.ipp>
#endif
