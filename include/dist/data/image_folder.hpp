/// Images in folders, one folder for each class: `train/cat/1.png`, `train/dog/1.jpg`.
#pragma once

#include <sys/stat.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/example.hpp>
#include <dist/data/files.hpp>
#include <dist/io/folder_names.hpp>
#include <dist/io/image.hpp>
#include <dist/io/random_access.hpp>

namespace dist::data {

/// A format of image files: how their names end, in small letters, and a function that makes pixels [height, width,
/// channels] of their bytes. io/png.hpp has `io::Png`, io/jpeg.hpp `io::Jpeg`. A format may also have a `signature`, the bytes with
/// which its files begin: a file with the signature of one of the formats is of that format, whatever its name.
template <class F>
concept ImageFormat = requires(std::span<const std::byte> bytes, std::size_t number, const std::string& name) {
  {std::string_view{F::extensions[0]}};
  { F::decode(bytes, number, name, number) } -> std::same_as<Tensor<std::uint8_t>>;
};

/// How the images of a folder are read.
struct ImageFolderOptions {
  std::size_t channels = 3;                                   ///< 1 (gray), 3 (RGB), or what the formats have besides
  std::size_t max_elements = io::image_default_max_elements;  ///< of an image
};

namespace detail {

/// The names in a folder that do not begin with a dot, sorted by their bytes. Throws FileError when it cannot be read.
[[nodiscard]] inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names = io::folder_names(folder, [&](int error) {
    throw FileError(folder, "cannot be read as a folder", std::strerror(error),
                    "Give a folder that has one folder of images for each class");
  });
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  return names;
}

[[nodiscard]] inline bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// What the name of a file ends with behind its last dot, in small letters.
[[nodiscard]] inline std::string extension_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  std::string extension = dot == std::string::npos ? std::string{} : name.substr(dot + 1);
  for (char& letter : extension)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + ('a' - 'A'));
  return extension;
}

/// A format whose files start with the bytes `signature`.
template <class Format>
concept HasSignature = requires {
  { Format::signature } -> std::convertible_to<std::string_view>;
};

template <class Format>
[[nodiscard]] bool has_signature([[maybe_unused]] std::span<const std::byte> bytes) {
  if constexpr (HasSignature<Format>)
    return std::string_view{reinterpret_cast<const char*>(bytes.data()), bytes.size()}.starts_with(Format::signature);
  else
    return false;
}

template <class Format>
[[nodiscard]] bool has_extension(std::string_view extension) {
  return std::find(std::begin(Format::extensions), std::end(Format::extensions), extension) !=
         std::end(Format::extensions);
}

/// "png, jpg, jpeg".
template <class... Formats>
[[nodiscard]] std::string extensions_of() {
  std::string all;
  const auto add = [&](const auto& extensions) {
    for (const std::string_view extension : extensions) all += concat(all.empty() ? "" : ", ", extension);
  };
  (add(Formats::extensions), ...);
  return all;
}

}  // namespace detail

/// The images of a folder of classes. Made by `image_folder`.
template <class Pixel, class... Formats>
class ImageFolder : public DatasetRange<ImageFolder<Pixel, Formats...>> {
 public:
  using Element = Example<Tensor<Pixel>, std::int32_t>;

  ImageFolder(const std::string& folder, ImageFolderOptions options) : options_(options) {
    std::vector<File> files;
    std::vector<std::string> classes;
    for (std::string& name : detail::names_in(folder)) {
      const std::string path = folder + "/" + name;
      if (!detail::is_folder(path)) continue;
      const std::size_t before = files.size();
      for (const std::string& image : detail::names_in(path)) {
        const std::string extension = detail::extension_of(image);
        if (!(detail::has_extension<Formats>(extension) || ...))
          throw FileError(path + "/" + image, "is of no format that is read here",
                          concat("the names of images end with: ", detail::extensions_of<Formats...>()),
                          "Move it elsewhere, or name its format in image_folder<...>");
        files.push_back({path + "/" + image, static_cast<std::int32_t>(classes.size())});
      }
      if (files.size() == before)
        throw FileError(path, "has no images", "a folder of a class is empty",
                        "Move it elsewhere, or put images there");
      classes.push_back(std::move(name));
    }
    if (classes.empty())
      throw FileError(folder, "has no classes", "there is no folder in it",
                      "Give a folder that has one folder of images for each class");
    files_ = std::make_shared<const std::vector<File>>(std::move(files));
    classes_ = std::make_shared<const std::vector<std::string>>(std::move(classes));
  }

  class Iterator {
   public:
    explicit Iterator(const ImageFolder& dataset) : dataset_(&dataset) {}

    bool next(Element& element) {
      if (index_ == dataset_->files_->size()) return false;
      const File& file = (*dataset_->files_)[index_];
      element = {dataset_->read(file.path), file.label};
      ++index_;
      return true;
    }

    [[nodiscard]] std::uint64_t position() const noexcept { return index_; }
    void seek(std::uint64_t position) {
      index_ = static_cast<std::size_t>(std::min<std::uint64_t>(position, dataset_->files_->size()));
    }

   private:
    const ImageFolder* dataset_;
    std::size_t index_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  [[nodiscard]] Cardinality cardinality() const { return Cardinality::known(files_->size()); }

  /// The names of the classes: label `i` is the folder `class_names()[i]`.
  [[nodiscard]] const std::vector<std::string>& class_names() const noexcept { return *classes_; }

  [[nodiscard]] std::size_t num_files() const noexcept { return files_->size(); }
  /// Every `shards`-th image from image `shard` on: what one of `shards` workers reads (spec I08). Throws InvalidArgument
  /// when there is no such shard, and when there are fewer images than shards.
  [[nodiscard]] ImageFolder shard_files(std::size_t shards, std::size_t shard) const {
    ImageFolder part = *this;
    part.files_ = std::make_shared<const std::vector<File>>(detail::files_of_shard(*files_, shards, shard));
    return part;
  }

 private:
  struct File {
    std::string path;
    std::int32_t label;
  };

  [[nodiscard]] Tensor<Pixel> read(const std::string& path) const {
    const io::RandomAccessFile file{path};
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
    bytes.resize(file.read_at(0, bytes));
    Tensor<std::uint8_t> pixels;
    const std::string extension = detail::extension_of(path);
    const auto decode = [&]<class Format>(bool is_format) {
      if (is_format) pixels = Format::decode(bytes, options_.channels, path, options_.max_elements);
      return is_format;
    };
    static_cast<void>((decode.template operator()<Formats>(detail::has_signature<Formats>(bytes)) || ...) ||
                      (decode.template operator()<Formats>(detail::has_extension<Formats>(extension)) || ...));
    if constexpr (std::same_as<Pixel, std::uint8_t>) {
      return pixels;
    } else {
      Tensor<Pixel> scaled{pixels.shape()};
      for (std::size_t i = 0; i < pixels.size(); ++i) scaled[i] = static_cast<float>(pixels[i]) / 255.0F;
      return scaled;
    }
  }

  ImageFolderOptions options_;
  std::shared_ptr<const std::vector<File>> files_;
  std::shared_ptr<const std::vector<std::string>> classes_;
};

/// The images of a folder that has a folder for each class, as examples: `x` an image [height, width, channels], of floats
/// in [0, 1] or, with image_folder<std::uint8_t, ...>, of bytes; `y` the number of its class as std::int32_t. Classes are numbered in
/// the order of their folders' names, and images come in the order of their names, both sorted by their bytes; names that
/// begin with a dot are left out. `image_folder<io::Png, io::Jpeg>("train")` reads both formats.
///
/// The files are listed at once, and decoded when their turn comes, by the format that they begin as if it is one of those, or
/// else by their extension. Images of different sizes are batched behind
/// `resize_images`. Throws FileError when a folder cannot be read, has no classes, a class without images, or a file
/// whose name ends as no format's; and, while iterating, as the formats do.
template <class First, class... Rest>
[[nodiscard]] auto image_folder(const std::string& folder, ImageFolderOptions options = {}) {
  if constexpr (std::same_as<First, float> || std::same_as<First, std::uint8_t>) {
    constexpr bool has_formats = sizeof...(Rest) > 0 && (ImageFormat<Rest> && ...);
    static_assert(has_formats,
                  "image_folder: name the formats to read, such as image_folder<io::Png, io::Jpeg>(folder)");
    if constexpr (has_formats) return ImageFolder<First, Rest...>{folder, options};
  } else {
    return image_folder<float, First, Rest...>(folder, options);
  }
}

}  // namespace dist::data
