/// Reads JPEG images. The only header that includes libjpeg-turbo's.
#pragma once

#if !__has_include(<turbojpeg.h>)
#error \
    "<turbojpeg.h> of libjpeg-turbo was not found: install libturbojpeg0-dev, and link dist::jpeg (without CMake: -lturbojpeg)"
#endif

#include <turbojpeg.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/image.hpp>

namespace dist::io {

namespace detail {

/// libjpeg-turbo's decoder, which is freed at the end.
class JpegDecoder {
 public:
  JpegDecoder() : handle_(tjInitDecompress()) {
    if (handle_ == nullptr) throw std::bad_alloc();
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() { tjDestroy(handle_); }

  [[nodiscard]] tjhandle get() const noexcept { return handle_; }

 private:
  tjhandle handle_;
};

}  // namespace detail

/// The format JPEG, for `data::image_folder`.
struct Jpeg {
  static constexpr std::string_view extensions[] = {"jpg", "jpeg"};

  /// The pixels [height, width, channels] of the JPEG file whose bytes these are; `name` is what errors call it.
  ///
  /// Its colours are converted to `channels`, 1 (gray) or 3 (RGB); how a camera was held, which a file may tell besides, is
  /// not looked at. Throws FileError for what is no JPEG file, not sound or truncated, has colours of print (CMYK), or more
  /// than `max_elements` elements; InvalidArgument for other channels.
  [[nodiscard]] static Tensor<std::uint8_t> decode(std::span<const std::byte> bytes, std::size_t channels = 3,
                                                   const std::string& name = "<memory>",
                                                   std::size_t max_elements = image_default_max_elements) {
    if (channels != 1 && channels != 3)
      throw InvalidArgument("JPEG images are read as gray or RGB", text("not with ", channels, " channels"),
                            "Use 1 or 3 channels");
    const detail::JpegDecoder decoder;
    const auto require = [&](int result) {
      if (result != 0)
        throw FileError(name, "is not a sound JPEG image", tjGetErrorStr2(decoder.get()),
                        "Download or copy the file again, or convert it to RGB");
    };
    const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
    int width = 0;
    int height = 0;
    int subsampling = 0;
    int colours = 0;
    require(tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling, &colours));
    Tensor<std::uint8_t> pixels = detail::make_pixels(name, static_cast<std::size_t>(height),
                                                      static_cast<std::size_t>(width), channels, max_elements);
    require(tjDecompress2(decoder.get(), data, bytes.size(), pixels.data(), width, 0, height,
                          channels == 1 ? TJPF_GRAY : TJPF_RGB, TJFLAG_ACCURATEDCT));
    return pixels;
  }
};

}  // namespace dist::io
