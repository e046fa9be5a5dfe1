/// The only file that includes libjpeg-turbo's header.
#pragma once

#include <turbojpeg.h>

#include <new>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/io/jpeg.hpp>

namespace dist::io::detail {

/// Owns a decoder of libjpeg-turbo.
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

/// True if a warning of libjpeg reports missing or wrong pixels. Most other warnings concern superfluous bytes or an
/// unknown JFIF revision.
[[nodiscard]] inline bool is_about_pixels(std::string_view warning) {
  for (const std::string_view part :
       {"remature end", "bad Huffman code", "bad arithmetic code", "instead of RST", "progression"})
    if (warning.find(part) != std::string_view::npos) return true;
  return false;
}

/// True if an end-of-image marker follows the last scan. Scan data cannot contain these bytes.
[[nodiscard]] inline bool has_end(std::string_view file) {
  const std::size_t scan = file.rfind("\xFF\xDA");
  return scan != std::string_view::npos && file.find("\xFF\xD9", scan) != std::string_view::npos;
}

/// True if the file has the marker of Adobe's programs, which store inverted CMYK.
[[nodiscard]] inline bool is_of_adobe(std::string_view file) {
  using namespace std::string_view_literals;
  return file.substr(0, file.find("\xFF\xDA"))
             .find(
                 "\xFF\xEE\0\x0E"
                 "Adobe"sv) != std::string_view::npos;
}

/// Converts CMYK to RGB or gray: each colour is the light that its ink and black leave.
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

}  // namespace dist::io::detail

namespace dist::io {

DIST_INLINE Tensor<std::uint8_t> Jpeg::decode(std::span<const std::byte> bytes, std::size_t channels,
                                              const std::string& name, std::size_t max_elements) {
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
      problem = "Premature end of JPEG file";  // libjpeg reports only its first warning
    }
    throw FileError(name, "is not a valid JPEG image", problem, "Download or copy the file again");
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

}  // namespace dist::io
