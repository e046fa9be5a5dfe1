/// Images in folders, one folder for each class: `train/cat/1.png`, `train/dog/1.jpg`.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/example.hpp>
#include <dist/data/files.hpp>
#include <dist/io/image.hpp>

namespace dist::data {

/// A format of image files: its extensions in lower case, and a function that decodes bytes to pixels [height, width,
/// channels]. Formats are `io::Png` (io/png.hpp) and `io::Jpeg` (io/jpeg.hpp). Its optional `signature`, the first
/// bytes of its files, takes precedence over the extension.
template <class F>
concept ImageFormat = requires(std::span<const std::byte> bytes, std::size_t number, const std::string& name) {
  {std::string_view{F::extensions[0]}};
  { F::decode(bytes, number, name, number) } -> std::same_as<Tensor<std::uint8_t>>;
};

/// Options of `image_folder`.
struct ImageFolderOptions {
  std::size_t channels = 3;                                   ///< 1 (gray), 3 (RGB), or another number that the formats
                                                              ///< support
  std::size_t max_elements = io::image_default_max_elements;  ///< limit for one image
};

namespace detail {

/// A type-erased image format.
struct AnyImageFormat {
  std::vector<std::string_view> extensions;
  std::string_view signature;  // empty if the format has none
  Tensor<std::uint8_t> (*decode)(std::span<const std::byte>, std::size_t, const std::string&, std::size_t);
};
/// A format whose files begin with the same bytes.
template <class Format>
concept HasSignature = requires {
  std::string_view{Format::signature};
};

template <class Format>
[[nodiscard]] AnyImageFormat image_format() {
  AnyImageFormat format{{std::begin(Format::extensions), std::end(Format::extensions)},
                        {},
                        [](std::span<const std::byte> bytes, std::size_t channels, const std::string& name,
                           std::size_t max_elements) { return Format::decode(bytes, channels, name, max_elements); }};
  if constexpr (HasSignature<Format>) format.signature = std::string_view{Format::signature};
  return format;
}

/// The images of a folder of classes, independent of the pixel type. Copies share the list of files.
class ImageFiles {
 public:
  ImageFiles(const std::string& folder, ImageFolderOptions options, std::vector<AnyImageFormat> formats);

  [[nodiscard]] std::size_t size() const noexcept { return files_->size(); }
  [[nodiscard]] std::int32_t label(std::size_t file) const { return (*files_)[file].label; }
  [[nodiscard]] const std::vector<std::string>& class_names() const noexcept { return *classes_; }
  [[nodiscard]] ImageFiles shard(std::size_t shards, std::size_t shard) const;

  void read(std::size_t file, Tensor<std::uint8_t>& pixels) const;
  /// Reads pixels scaled to [0, 1].
  void read(std::size_t file, Tensor<float>& pixels) const;

 private:
  struct File {
    std::string path;
    std::int32_t label;
  };

  ImageFolderOptions options_;
  std::shared_ptr<const std::vector<AnyImageFormat>> formats_;
  std::shared_ptr<const std::vector<File>> files_;
  std::shared_ptr<const std::vector<std::string>> classes_;
};

}  // namespace detail

/// The images of a folder of classes. Made by `image_folder`.
template <class Pixel, class... Formats>
class ImageFolder : public DatasetRange<ImageFolder<Pixel, Formats...>> {
 public:
  using Element = Example<Tensor<Pixel>, std::int32_t>;

  /// The source that `image_folder(...)` makes from the images found.
  explicit ImageFolder(detail::ImageFiles files) : files_(std::move(files)) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    explicit Iterator(const ImageFolder& dataset) : dataset_(&dataset) {}

    bool next(Element& element) {
      const detail::ImageFiles& files = dataset_->files_;
      if (index_ == files.size()) return false;
      files.read(index_, element.x);
      element.y = files.label(index_++);
      return true;
    }

    [[nodiscard]] std::uint64_t position() const noexcept { return index_; }
    void seek(std::uint64_t position) {
      index_ = static_cast<std::size_t>(std::min<std::uint64_t>(position, dataset_->files_.size()));
    }

   private:
    const ImageFolder* dataset_;
    std::size_t index_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  [[nodiscard]] Cardinality cardinality() const { return Cardinality::known(files_.size()); }

  /// The names of the classes: label `i` is the folder `class_names()[i]`.
  [[nodiscard]] const std::vector<std::string>& class_names() const noexcept { return files_.class_names(); }

  [[nodiscard]] std::size_t num_files() const noexcept { return files_.size(); }
  /// Every `shards`-th image, starting at image `shard` (spec I08). Throws InvalidArgument if `shard` is out of range,
  /// or if there are fewer images than shards.
  [[nodiscard]] ImageFolder shard_files(std::size_t shards, std::size_t shard) const {
    return ImageFolder{files_.shard(shards, shard)};
  }

 private:
  detail::ImageFiles files_;
};

/// The images of a folder with one subfolder per class, as examples: `x` is an image [height, width, channels] of
/// floats in [0, 1], or of bytes with `image_folder<std::uint8_t, ...>`; `y` is the number of its class as
/// std::int32_t. Classes and images are sorted by the bytes of their names; names that begin with a dot are skipped.
/// `image_folder<io::Png, io::Jpeg>("train")` reads both formats.
///
/// The call lists the files; a pass decodes them, by their signature or else their extension. To batch images of
/// different sizes, insert `resize_images`. Throws FileError if a folder cannot be read, if it has no subfolders, or if
/// a class has no images or a file without a known extension. A pass throws like the formats.
template <class First, class... Rest>
[[nodiscard]] auto image_folder(const std::string& folder, ImageFolderOptions options = {}) {
  if constexpr (std::same_as<First, float> || std::same_as<First, std::uint8_t>) {
    constexpr bool has_formats = sizeof...(Rest) > 0 && (ImageFormat<Rest> && ...);
    static_assert(has_formats,
                  "image_folder: name the formats to read, such as image_folder<io::Png, io::Jpeg>(folder)");
    if constexpr (has_formats)
      return ImageFolder<First, Rest...>{detail::ImageFiles{folder, options, {detail::image_format<Rest>()...}}};
  } else {
    return image_folder<float, First, Rest...>(folder, options);
  }
}

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/image_folder.ipp>
#endif
