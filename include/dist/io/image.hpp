/// Common parts of the readers of image files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>

namespace dist::io {

/// The default limit on the elements (bytes) of an image.
inline constexpr std::size_t image_default_max_elements = std::size_t{1} << 28;

namespace detail {

/// Returns the luma of a colour (ITU-R BT.601), rounded, like JPEG.
[[nodiscard]] constexpr std::uint8_t luma(unsigned red, unsigned green, unsigned blue) noexcept {
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);  // 0.299, 0.587, 0.114
}

/// Returns the pixels of an image [height, width, channels], all zeros. Throws FileError if there are more than
/// `max_elements` elements, or none.
[[nodiscard]] inline Tensor<std::uint8_t> make_pixels(const std::string& name, std::size_t height, std::size_t width,
                                                      std::size_t channels, std::size_t max_elements) {
  if (height == 0 || width == 0)
    throw FileError(name, "announces an image without pixels", concat("it has ", height, " rows of ", width),
                    "Download or copy the file again");
  if (height > max_elements / width / channels)
    throw FileError(name, "announces an image that is too large",
                    concat(height, " x ", width, " pixels of ", channels, " channels, at most ", max_elements,
                           " elements are read"),
                    "Raise max_elements if the file is sound");
  return Tensor<std::uint8_t>{Shape{height, width, channels}};
}

}  // namespace detail

}  // namespace dist::io
