#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <dist/checkpoint/snapshot.hpp>
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

/// Whether the file at `path` is NPZ by its name, and not safetensors. Throws InvalidArgument for the name of another kind.
[[nodiscard]] inline bool is_npz(std::string_view path) {
  const bool npz = path.ends_with(".npz");
  if (!npz && !path.ends_with(".safetensors"))
    throw InvalidArgument(concat("Weights cannot be kept in a file named ", quoted(path)),
                          "the end of its name says no format", "Use a name that ends in .safetensors or .npz");
  return npz;
}

/// The tensors of a file of either format.
class WeightsFile {
 public:
  /// Throws FileError where the file is missing or not sound, and as `is_npz` does.
  explicit WeightsFile(std::string path) : path_(std::move(path)), file_(open(path_)) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// In the order of the file.
  [[nodiscard]] std::vector<std::string> names() const {
    if (const auto* const npz = std::get_if<io::Npz<>>(&file_)) return npz->names();
    std::vector<std::string> names;
    for (const io::SafetensorsEntry& entry : std::get<io::Safetensors<>>(file_).entries()) names.push_back(entry.name);
    return names;
  }
  /// The tensor of that name, whose elements are converted to `T`. Throws FileError where there is none, where it is damaged,
  /// and where an element has no number of type `T`.
  template <class T>
  [[nodiscard]] Tensor<T> read(std::string_view name) const {
    return std::visit([&](const auto& file) { return file.template read_converted<T>(name); }, file_);
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

/// Writes the tensors of a snapshot as a file of the format that its name says, replaced as AtomicFile does. Throws FileError,
/// and InvalidArgument for a tensor whose elements NPZ cannot hold.
inline void write_weights(const std::string& path, const Snapshot& snapshot) {
  if (is_npz(path)) {
    io::NpzWriter file{path};
    for (const SavedTensor& tensor : snapshot.local_tensors())
      io::with_element_type(tensor.type, [&]<class T>() {
        if constexpr (io::NpyElement<T>)
          file.add(tensor.key, TensorView<const T>{reinterpret_cast<const T*>(tensor.bytes.data()), tensor.shape});
        else
          throw InvalidArgument(concat("NPZ cannot hold ", quoted(tensor.key)),
                                concat("its elements are ", dtype_name<T>, ", which NumPy has not"),
                                "Use a name that ends in .safetensors");
      });
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
