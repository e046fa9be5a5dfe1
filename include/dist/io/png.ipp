/// The only file that includes libpng's header.
#pragma once

#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/io/png.hpp>

namespace dist::io::detail {

/// Owns an image to be written by libpng.
struct PngImage {
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(&image); }

  png_image image{};
};

/// Reads the samples of a PNG file. libpng reports errors by longjmp, so its calls are in functions without
/// destructible objects, which return false on errors.
class PngReader {
 public:
  /// `bytes` must outlive it. Throws std::bad_alloc.
  explicit PngReader(std::span<const std::byte> bytes)
      : rest_(bytes), png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, this, take);
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  /// Reads up to the pixels, to be converted to 8 bits: the high byte of 16 bits, fewer bits scaled, palettes as
  /// colours, and transparency as alpha.
  [[nodiscard]] bool begin() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    png_set_strip_16(png_);
    png_set_expand(png_);
    static_cast<void>(png_set_interlace_handling(png_));
    png_read_update_info(png_, info_);
    return true;
  }
  [[nodiscard]] std::size_t height() const { return png_get_image_height(png_, info_); }
  [[nodiscard]] std::size_t width() const { return png_get_image_width(png_, info_); }
  /// 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 (RGBA).
  [[nodiscard]] std::size_t channels() const { return png_get_channels(png_, info_); }
  /// Reads the pixels into `rows`, one pointer per row.
  [[nodiscard]] bool read(std::span<png_byte*> rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows.data());
    return true;
  }
  [[nodiscard]] const char* message() const noexcept { return message_; }

 private:
  [[noreturn]] static void fail(png_struct* png, const char* message) {
    auto& self = *static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self.message_, message, sizeof(self.message_) - 1);
    png_longjmp(png, 1);
  }
  static void ignore(png_struct*, const char*) {}
  static void take(png_struct* png, png_byte* to, std::size_t count) {
    auto& self = *static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > self.rest_.size()) png_error(png, "the file ends too early");
    std::memcpy(to, self.rest_.data(), count);
    self.rest_ = self.rest_.subspan(count);
  }

  std::span<const std::byte> rest_;
  char message_[128] = {};
  png_struct* png_;
  png_info* info_ = nullptr;
};

/// Returns libpng's format for pixels of this many bytes. Throws InvalidArgument unless there are 1 to 4.
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
      throw InvalidArgument("PNG does not support such images", concat("with ", channels, " channels"),
                            "Use 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 (RGBA)");
  }
}

/// Converts between numbers of channels. Added alpha is opaque.
inline void convert_channels(const std::uint8_t* from, std::size_t from_channels, std::uint8_t* to,
                             std::size_t to_channels, std::size_t pixels) {
  for (std::size_t i = 0; i < pixels; ++i, from += from_channels, to += to_channels) {
    const bool is_gray = from_channels <= 2;
    if (to_channels <= 2)
      to[0] = is_gray ? from[0] : luma(from[0], from[1], from[2]);
    else
      for (std::size_t colour = 0; colour < 3; ++colour) to[colour] = from[is_gray ? 0 : colour];
    if (to_channels % 2 == 0) to[to_channels - 1] = from_channels % 2 == 0 ? from[from_channels - 1] : 255;
  }
}

}  // namespace dist::io::detail

namespace dist::io {

DIST_INLINE Tensor<std::uint8_t> Png::decode(std::span<const std::byte> bytes, std::size_t channels,
                                             const std::string& name, std::size_t max_elements) {
  static_cast<void>(detail::png_format(channels));
  detail::PngReader reader{bytes};
  const auto require = [&](bool succeeded) {
    if (!succeeded)
      throw FileError(name, "is not a valid PNG image", reader.message(), "Download or copy the file again");
  };
  require(reader.begin());
  const std::size_t height = reader.height(), width = reader.width(), own = reader.channels();
  Tensor<std::uint8_t> pixels = detail::make_pixels(name, height, width, channels, max_elements);
  std::vector<png_byte> samples(own == channels ? 0 : height * width * own);
  png_byte* const first = own == channels ? pixels.data() : samples.data();
  std::vector<png_byte*> rows(height);
  for (std::size_t row = 0; row < height; ++row) rows[row] = first + row * width * own;
  require(reader.read(rows));
  if (own != channels) detail::convert_channels(first, own, pixels.data(), channels, height * width);
  return pixels;
}

DIST_INLINE std::string encode_png(TensorView<const std::uint8_t> pixels) {
  const Shape& shape = pixels.shape();
  constexpr std::size_t most = std::size_t{1} << 30;  // sizes in bytes must fit libpng's integers
  if (shape.rank() != 3 || pixels.size() == 0 || pixels.size() > most)
    throw ShapeMismatch("These pixels cannot be stored as a PNG image",
                        concat("their shape is ", to_string(shape), ", expected [height, width, channels]"),
                        "Use an array of rank 3 with at least one and at most 2^30 elements");
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
