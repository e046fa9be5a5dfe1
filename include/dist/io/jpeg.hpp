/// Reader for JPEG images.
#pragma once

#if !defined(DIST_COMPILED) && !__has_include(<turbojpeg.h>)
#error \
    "<turbojpeg.h> of libjpeg-turbo was not found: install libturbojpeg0-dev, and link dist::jpeg (without CMake: -lturbojpeg)"
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

/// The JPEG format, for `data::image_folder`.
struct Jpeg {
  static constexpr std::string_view extensions[] = {"jpg", "jpeg"};
  static constexpr std::string_view signature = "\xFF\xD8\xFF";

  /// Decodes the bytes of a JPEG file to pixels [height, width, channels]. `name` is for error messages.
  ///
  /// Colours are converted to `channels`, 1 (gray) or 3 (RGB), from CMYK like in TensorFlow. The camera's orientation
  /// is ignored. Warnings of libjpeg are errors only if they concern pixels: superfluous bytes or an unknown JFIF
  /// revision are accepted. Throws FileError if the data are not JPEG, damaged or truncated, or have more than
  /// `max_elements` elements, InvalidArgument for other numbers of channels.
  [[nodiscard]] static Tensor<std::uint8_t> decode(std::span<const std::byte> bytes, std::size_t channels = 3,
                                                   const std::string& name = "<memory>",
                                                   std::size_t max_elements = image_default_max_elements);
};

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/jpeg.ipp>
#endif
