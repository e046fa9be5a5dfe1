/// Reader and writer for PNG images.
#pragma once

#if !defined(DIST_COMPILED) && !__has_include(<png.h>)
#error "<png.h> of libpng was not found: install libpng-dev, and link dist::png (without CMake: -lpng)"
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/image.hpp>

namespace dist::io {

/// The PNG format, for `data::image_folder`.
struct Png {
  static constexpr std::string_view extensions[] = {"png"};
  static constexpr std::string_view signature = "\x89PNG\r\n\x1A\n";

  /// Decodes the bytes of a PNG file to pixels [height, width, channels]. `name` is for error messages.
  ///
  /// Gamma and colour profiles are ignored, and 16-bit samples reduced to their high byte. Pixels are converted to
  /// `channels`, 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 (RGBA): gray is the luma (ITU-R BT.601), like in JPEG;
  /// dropped alpha leaves colours unchanged. Throws FileError if the data are not PNG, damaged or truncated, or have
  /// more than `max_elements` elements, InvalidArgument for other numbers of channels.
  [[nodiscard]] static Tensor<std::uint8_t> decode(std::span<const std::byte> bytes, std::size_t channels = 3,
                                                   const std::string& name = "<memory>",
                                                   std::size_t max_elements = image_default_max_elements);
};

/// Encodes pixels [height, width, channels] as a PNG file, with 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 (RGBA)
/// channels. Throws ShapeMismatch if the rank is not 3 or there are 0 pixels, InvalidArgument for other numbers of
/// channels.
[[nodiscard]] std::string encode_png(TensorView<const std::uint8_t> pixels);

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/png.ipp>
#endif
