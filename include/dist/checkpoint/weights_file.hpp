#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dist/checkpoint/snapshot.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/json.hpp>
#include <dist/io/npy.hpp>
#include <dist/io/npz.hpp>
#include <dist/io/npz_writer.hpp>
#include <dist/io/random_access.hpp>
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

/// The tensors of a file, or of all files that Hugging Face's index of a large model lists.
class WeightsFile {
 public:
  /// `path` is a .safetensors or .npz file, an index, or a folder with model.safetensors.index.json or
  /// model.safetensors. Throws FileError if a file is missing or damaged, and the errors of `is_npz`.
  explicit WeightsFile(std::string path) : path_(std::move(path)) {
    struct stat status {};
    if (::stat(path_.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      path_ += "/model.safetensors";
      if (const std::string index = path_ + index_extension; ::access(index.c_str(), F_OK) == 0) path_ = index;
    }
    if (path_.ends_with(index_extension)) {
      open_index();
    } else {
      files_.push_back(open(path_));
      for (std::string& name : names_of(files_[0])) entries_.push_back({std::move(name), 0});
    }
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// In the order of the file, or of the index.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
  }
  /// Returns the tensor with that name, converted to `type`. Throws FileError if it does not exist or is damaged, or an
  /// element does not fit the type.
  [[nodiscard]] AnyTensor read(std::string_view name, io::ElementType type) const {
    return std::visit([&](const auto& file) { return file.read_converted(name, type); }, file_of(name));
  }
  /// Returns the safetensors file that has the tensor with that name. Throws InvalidArgument if it is an NPZ file.
  [[nodiscard]] const io::Safetensors<>& safetensors_of(std::string_view name) const {
    const auto* const file = std::get_if<io::Safetensors<>>(&file_of(name));
    if (file == nullptr)
      throw InvalidArgument(concat("Weights cannot be saved in the form of the file ", quoted(path_)),
                            "it is an NPZ file", "Give a .safetensors file");
    return *file;
  }

 private:
  using File = std::variant<io::Safetensors<>, io::Npz<>>;
  struct Entry {
    std::string name;
    std::size_t file;
  };
  static constexpr const char* index_extension = ".index.json";

  /// Returns the file with that tensor; for an unknown name, the first one, which reports it.
  [[nodiscard]] const File& file_of(std::string_view name) const {
    for (const Entry& entry : entries_)
      if (entry.name == name) return files_.at(entry.file);
    return files_.at(0);
  }
  [[nodiscard]] static File open(const std::string& path) {
    if (is_npz(path)) return io::Npz<>{path};
    return io::Safetensors<>{path};
  }
  [[nodiscard]] static std::vector<std::string> names_of(const File& file) {
    if (const auto* const npz = std::get_if<io::Npz<>>(&file)) return npz->names();
    std::vector<std::string> names;
    for (const io::SafetensorsEntry& entry : std::get<io::Safetensors<>>(file).entries()) names.push_back(entry.name);
    return names;
  }
  void open_index() {
    const auto refuse = [&](std::string_view why) {
      throw FileError(path_, "is not a valid index of weights", why, "Download or save the model again");
    };
    constexpr std::size_t max_bytes = io::safetensors_max_header_bytes;
    const io::Json json = io::parse_json(io::read_text(io::RandomAccessFile{path_}, max_bytes + 1), max_bytes, refuse);
    json_t* const map = json_object_get(json.get(), "weight_map");
    if (json_object_size(map) == 0) refuse("it has no object 'weight_map' with names of tensors and files");
    std::vector<std::string> file_names;
    const char* name = nullptr;
    json_t* value = nullptr;
    json_object_foreach(map, name, value) {
      const std::string file{json_is_string(value) ? io::string_in(value) : std::string_view{}};
      if (file.empty() || file.find('/') != std::string::npos)
        refuse(concat(quoted(name), " has no file in the index's folder"));
      const auto known = std::find(file_names.begin(), file_names.end(), file);
      entries_.push_back({name, static_cast<std::size_t>(known - file_names.begin())});
      if (known == file_names.end()) {
        file_names.push_back(file);
        files_.push_back(open(path_.substr(0, path_.rfind('/') + 1) + file));
      }
    }
  }

  std::string path_;
  std::vector<File> files_;
  std::vector<Entry> entries_;
};

/// Writes tensors to a file in the format of its extension, replaced atomically (AtomicFile). `metadata` is for the
/// header of a safetensors file. Throws FileError, and InvalidArgument if NPZ does not support an element type.
inline void write_weights(const std::string& path, std::span<const SavedTensor> weights,
                          const std::map<std::string, std::string>& metadata = {}) {
  if (is_npz(path)) {
    io::NpzWriter file{path};
    for (const SavedTensor& tensor : weights) {
      if (tensor.type == io::ElementType::bf16)
        throw InvalidArgument(concat("NPZ cannot hold ", quoted(tensor.key)),
                              concat("its elements are ", to_string(tensor.type), ", which NumPy does not have"),
                              "Use a name that ends in .safetensors");
      file.add(tensor.key, {tensor.type, tensor.shape, tensor.bytes});
    }
    file.commit();
  } else {
    std::vector<io::SafetensorsTensor> tensors;
    for (const SavedTensor& tensor : weights) tensors.push_back({tensor.key, tensor.type, tensor.shape});
    io::SafetensorsWriter file{path, std::move(tensors), metadata};
    for (const SavedTensor& tensor : weights) file.append(tensor.bytes);
    file.commit();
  }
}

}  // namespace dist::detail
