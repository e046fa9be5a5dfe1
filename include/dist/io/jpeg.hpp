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
#include <vector>

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

/// True if a warning of libjpeg reports pixels that are missing or wrong. The most frequent other warnings are about superfluous
/// bytes and an unknown revision of JFIF.
[[nodiscard]] inline bool is_about_pixels(std::string_view warning) {
  for (const std::string_view part :
       {"remature end", "bad Huffman code", "bad arithmetic code", "instead of RST", "progression"})
    if (warning.find(part) != std::string_view::npos) return true;
  return false;
}

/// True if the marker of the end of the image follows its last scan, in whose data no such bytes can be.
[[nodiscard]] inline bool has_end(std::string_view file) {
  const std::size_t scan = file.rfind("\xFF\xDA");
  return scan != std::string_view::npos && file.find("\xFF\xD9", scan) != std::string_view::npos;
}

/// True if the file has the marker of Adobe's programs, which write inverted inks.
[[nodiscard]] inline bool is_of_adobe(std::string_view file) {
  using namespace std::string_view_literals;
  return file.substr(0, file.find("\xFF\xDA"))
             .find(
                 "\xFF\xEE\0\x0E"
                 "Adobe"sv) != std::string_view::npos;
}

/// Makes colours or gray of cyan, magenta, yellow and black: each colour is the white that its ink and black leave.
inline void convert_inks(std::span<const unsigned char> inks, bool inverted, std::uint8_t* to, std::size_t channels) {
  for (std::size_t i = 0; i < inks.size(); i += 4, to += channels) {
    const auto left = [&](std::size_t ink) -> unsigned { return inverted ? inks[i + ink] : 255U - inks[i + ink]; };
    unsigned colour[3];
    for (std::size_t ink = 0; ink < 3; ++ink) colour[ink] = (left(ink) * left(3) + 127) / 255;
    if (channels == 1)
      to[0] = luma(colour[0], colour[1], colour[2]);
    else
      for (std::size_t which = 0; which < 3; ++which) to[which] = static_cast<std::uint8_t>(colour[which]);
  }
}

}  // namespace detail

/// The format JPEG, for `data::image_folder`.
struct Jpeg {
  static constexpr std::string_view extensions[] = {"jpg", "jpeg"};
  static constexpr std::string_view signature = "\xFF\xD8\xFF";

  /// The pixels [height, width, channels] of the JPEG file whose bytes these are; `name` is what errors call it.
  ///
  /// Its colours are converted to `channels`, 1 (gray) or 3 (RGB). Colours of print (CMYK) are converted as TensorFlow does.
  /// Images are not rotated by the orientation that a camera may store. Warnings of libjpeg count only where they are about the
  /// pixels: files with superfluous bytes or an unknown revision of JFIF are read. Throws FileError if the
  /// file is not a JPEG file, damaged or truncated, or has more than `max_elements` elements, InvalidArgument for other channels.
  [[nodiscard]] static Tensor<std::uint8_t> decode(std::span<const std::byte> bytes, std::size_t channels = 3,
                                                   const std::string& name = "<memory>",
                                                   std::size_t max_elements = image_default_max_elements) {
    if (channels != 1 && channels != 3)
      throw InvalidArgument("JPEG images are read as gray or RGB", concat("not with ", channels, " channels"),
                            "Use 1 or 3 channels");
    const std::string_view file{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    const detail::JpegDecoder decoder;
    const auto require = [&](int result) {
      if (result == 0) return;
      std::string_view problem = tjGetErrorStr2(decoder.get());
      if (tjGetErrorCode(decoder.get()) == TJERR_WARNING && !detail::is_about_pixels(problem)) {
        if (detail::has_end(file)) return;
        problem = "Premature end of JPEG file";  // libjpeg reports its first warning only
      }
      throw FileError(name, "is not a sound JPEG image", problem, "Download or copy the file again");
    };
    const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
    int width = 0;
    int height = 0;
    int subsampling = 0;
    int colours = 0;
    require(tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling, &colours));
    Tensor<std::uint8_t> pixels = detail::make_pixels(name, static_cast<std::size_t>(height),
                                                      static_cast<std::size_t>(width), channels, max_elements);
    const auto decompress = [&](unsigned char* to, int format) {
      require(tjDecompress2(decoder.get(), data, bytes.size(), to, width, 0, height, format, TJFLAG_ACCURATEDCT));
    };
    if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
      std::vector<unsigned char> inks(pixels.size() / channels * 4);
      decompress(inks.data(), TJPF_CMYK);
      detail::convert_inks(inks, detail::is_of_adobe(file), pixels.data(), channels);
    } else {
      decompress(pixels.data(), channels == 1 ? TJPF_GRAY : TJPF_RGB);
    }
    return pixels;
  }
};

}  // namespace dist::io
