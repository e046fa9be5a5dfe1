#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dist/checkpoint/snapshot.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/npy.hpp>
#include <dist/io/npz.hpp>
#include <dist/io/npz_writer.hpp>
#include <dist/io/safetensors.hpp>
#include <dist/io/safetensors_writer.hpp>

namespace dist::detail {

/// True if the extension of `path` is .npz, false if it is .safetensors. Throws InvalidArgument for others.
[[nodiscard]] inline bool is_npz(std::string_view path) {
  const bool npz = path.ends_with(".npz");
  if (!npz && !path.ends_with(".safetensors"))
    throw InvalidArgument(concat("Weights cannot be stored in a file named ", quoted(path)),
                          "its name does not end in a known extension", "Use a name that ends in .safetensors or .npz");
  return npz;
}

class WeightsFile {
 public:
  /// Throws FileError if the file is missing or damaged, and the errors of `is_npz`.
  explicit WeightsFile(std::string path) : path_(std::move(path)), file_(open(path_)) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// In the order of the file.
  [[nodiscard]] std::vector<std::string> names() const {
    if (const auto* const npz = std::get_if<io::Npz<>>(&file_)) return npz->names();
    std::vector<std::string> names;
    for (const io::SafetensorsEntry& entry : std::get<io::Safetensors<>>(file_).entries()) names.push_back(entry.name);
    return names;
  }
  /// Returns the tensor with that name, converted to `type`. Throws FileError if it does not exist or is damaged, or an
  /// element does not fit the type.
  [[nodiscard]] AnyTensor read(std::string_view name, io::ElementType type) const {
    return std::visit([&](const auto& file) { return file.read_converted(name, type); }, file_);
  }

 private:
  using File = std::variant<io::Safetensors<>, io::Npz<>>;
  [[nodiscard]] static File open(const std::string& path) {
    if (is_npz(path)) return io::Npz<>{path};
    return io::Safetensors<>{path};
  }

  std::string path_;
  File file_;
};

/// Writes the tensors of a snapshot to a file in the format of its extension, replaced atomically (AtomicFile). Throws
/// FileError, and InvalidArgument if NPZ does not support an element type.
inline void write_weights(const std::string& path, const Snapshot& snapshot) {
  if (is_npz(path)) {
    io::NpzWriter file{path};
    for (const SavedTensor& tensor : snapshot.local_tensors()) {
      if (tensor.type == io::ElementType::bf16)
        throw InvalidArgument(concat("NPZ cannot hold ", quoted(tensor.key)),
                              concat("its elements are ", to_string(tensor.type), ", which NumPy does not have"),
                              "Use a name that ends in .safetensors");
      file.add(tensor.key, {tensor.type, tensor.shape, tensor.bytes});
    }
    file.commit();
  } else {
    std::vector<io::SafetensorsTensor> tensors;
    for (const SavedTensor& tensor : snapshot.local_tensors())
      tensors.push_back({tensor.key, tensor.type, tensor.shape});
    io::SafetensorsWriter file{path, std::move(tensors)};
    for (const SavedTensor& tensor : snapshot.local_tensors()) file.append(tensor.bytes);
    file.commit();
  }
}

}  // namespace dist::detail
