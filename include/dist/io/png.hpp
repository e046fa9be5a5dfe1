/// Reads and writes PNG images. The only header that includes libpng's.
#pragma once

#if !__has_include(<png.h>)
#error "<png.h> of libpng was not found: install libpng-dev, and link dist::png (without CMake: -lpng)"
#endif

#include <png.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/image.hpp>

namespace dist::io {

namespace detail {

/// libpng's name for pixels of so many bytes. Throws InvalidArgument for others than 1 to 4.
[[nodiscard]] inline png_uint_32 png_format(std::size_t channels) {
  switch (channels) {
    case 1:
      return PNG_FORMAT_GRAY;
    case 2:
      return PNG_FORMAT_GA;
    case 3:
      return PNG_FORMAT_RGB;
    case 4:
      return PNG_FORMAT_RGBA;
    default:
      throw InvalidArgument("PNG has no such images", text("of ", channels, " channels"),
                            "Use 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 (RGBA)");
  }
}

/// libpng's image, which is freed at the end.
struct PngImage {
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(&image); }

  png_image image{};
};

}  // namespace detail

/// The format PNG, for `data::image_folder`.
struct Png {
  static constexpr std::string_view extensions[] = {"png"};

  /// The pixels [height, width, channels] of the PNG file whose bytes these are; `name` is what errors call it.
  ///
  /// Its own channels are converted to `channels`, 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 (RGBA), of 8 bits in sRGB:
  /// gray is luminance, and what is transparent is over black where alpha is left out. Throws FileError for what is no PNG
  /// file, not sound or truncated, or has more than `max_elements` elements; InvalidArgument for other channels.
  [[nodiscard]] static Tensor<std::uint8_t> decode(std::span<const std::byte> bytes, std::size_t channels = 3,
                                                   const std::string& name = "<memory>",
                                                   std::size_t max_elements = image_default_max_elements) {
    const png_uint_32 format = detail::png_format(channels);
    detail::PngImage reader;
    const auto require = [&](int succeeded) {
      if (succeeded == 0)
        throw FileError(name, "is not a sound PNG image", static_cast<const char*>(reader.image.message),
                        "Download or copy the file again");
    };
    require(png_image_begin_read_from_memory(&reader.image, bytes.data(), bytes.size()));
    Tensor<std::uint8_t> pixels =
        detail::make_pixels(name, reader.image.height, reader.image.width, channels, max_elements);
    reader.image.format = format;
    require(png_image_finish_read(&reader.image, nullptr, pixels.data(), 0, nullptr));
    return pixels;
  }
};

/// The bytes of a PNG file of these pixels [height, width, channels], with 1 (gray), 2 (gray and alpha), 3 (RGB) or 4
/// (RGBA) channels. Throws ShapeMismatch for another number of axes and for no pixels, InvalidArgument for other channels.
[[nodiscard]] inline std::string encode_png(TensorView<const std::uint8_t> pixels) {
  const Shape& shape = pixels.shape();
  constexpr std::size_t most = std::size_t{1} << 30;  // so that sizes in bytes fit libpng's numbers
  if (shape.rank() != 3 || pixels.size() == 0 || pixels.size() > most)
    throw ShapeMismatch("These pixels are no image that PNG holds",
                        text("their shape is ", to_string(shape), ", expected [height, width, channels]"),
                        "Give an array of rank 3 that has elements, and at most 2^30 of them");
  detail::PngImage writer;
  writer.image.format = detail::png_format(shape[2]);
  writer.image.height = static_cast<png_uint_32>(shape[0]);
  writer.image.width = static_cast<png_uint_32>(shape[1]);
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(writer.image);
  std::string file(size, '\0');
  if (png_image_write_to_memory(&writer.image, file.data(), &size, 0, pixels.data(), 0, nullptr) == 0)
    throw InvalidArgument("An image could not be encoded as PNG", static_cast<const char*>(writer.image.message),
                          "Make it smaller");
  file.resize(size);
  return file;
}

}  // namespace dist::io
