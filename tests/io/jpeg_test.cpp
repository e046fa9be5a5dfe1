#include <dist/io/jpeg.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <doctest/doctest.h>

#include <io/bytes.hpp>
#include <io/image_bytes.hpp>

using dist::FileError;
using dist::InvalidArgument;
using dist::Shape;
using dist::Tensor;
using dist::io::Jpeg;
using dist_test::Bytes;

namespace {

/// Returns the largest difference of two byte lists of the same length. Decoders may round differently.
int distance(const Tensor<std::uint8_t>& pixels, const Bytes& expected) {
  REQUIRE(pixels.size() == expected.size());
  int largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(pixels[i] - std::to_integer<int>(expected[i])));
  return largest;
}

void refuse(const Bytes& bytes, const char* because, std::size_t max_elements = 1000) {
  CHECK_THROWS_WITH_AS(static_cast<void>(Jpeg::decode(bytes, 3, "a.jpg", max_elements)), doctest::Contains(because),
                       FileError);
}

}  // namespace

TEST_CASE("decoded pixels match another program's") {
  const auto colours = Jpeg::decode(dist_test::jpeg_rgb);
  CHECK(colours.shape() == Shape{8, 9, 3});
  CHECK(distance(colours, dist_test::jpeg_rgb_pixels) <= 2);
  const auto gray = Jpeg::decode(dist_test::jpeg_gray, 1);
  CHECK(gray.shape() == Shape{8, 9, 1});
  CHECK(distance(gray, dist_test::jpeg_gray_pixels) <= 2);
}

TEST_CASE("gray is decoded to three equal channels, colours to their luma") {
  const auto gray = Jpeg::decode(dist_test::jpeg_gray, 3);
  for (std::size_t i = 0; i < gray.size(); i += 3) {
    CHECK(gray[i] == gray[i + 1]);
    CHECK(gray[i] == gray[i + 2]);
  }
  const auto colours = Jpeg::decode(dist_test::jpeg_rgb, 3);
  const auto luminance = Jpeg::decode(dist_test::jpeg_rgb, 1);
  REQUIRE(luminance.size() == 72);
  for (std::size_t i = 0; i < 72; ++i)  // ITU-R BT.601
    CHECK(std::abs(luminance[i] - (0.299 * colours[3 * i] + 0.587 * colours[3 * i + 1] + 0.114 * colours[3 * i + 2])) <
          2);
  CHECK_THROWS_WITH_AS(static_cast<void>(Jpeg::decode(dist_test::jpeg_rgb, 4)),
                       doctest::Contains("not with 4 channels"), InvalidArgument);
}

TEST_CASE("CMYK is converted to RGB and gray") {
  CHECK(distance(Jpeg::decode(dist_test::jpeg_cmyk), dist_test::bytes({255, 255, 255})) == 0);
  // Inks (0, 200, 100, 40) leave 255, 55 and 155 of 255 parts of white, and black leaves 215 of 255 of these, like in
  // Pillow.
  const auto colours = Jpeg::decode(dist_test::jpeg_inks);
  REQUIRE(colours.shape() == Shape{8, 16, 3});
  for (std::size_t pixel = 0; pixel < 8 * 16; ++pixel) {
    const bool is_left = pixel % 16 < 8;
    CHECK(std::abs(colours[3 * pixel] - (is_left ? 215 : 0)) <= 1);
    CHECK(std::abs(colours[3 * pixel + 1] - (is_left ? 46 : 255)) <= 1);
    CHECK(std::abs(colours[3 * pixel + 2] - (is_left ? 131 : 255)) <= 1);
  }
  CHECK(std::abs(Jpeg::decode(dist_test::jpeg_inks, 1)[0] - (0.299 * 215 + 0.587 * 46 + 0.114 * 131)) < 2);

  Bytes direct = dist_test::jpeg_inks;  // without Adobe's marker, inks are not inverted
  direct[6] = std::byte{'a'};
  // Inks (255, 55, 155, 215) leave (0, 200, 100) parts of white, and 40 of these.
  const auto uninverted = Jpeg::decode(direct);
  CHECK(std::abs(uninverted[0] - 0) <= 1);
  CHECK(std::abs(uninverted[1] - 31) <= 1);
  CHECK(std::abs(uninverted[2] - 16) <= 1);
}

TEST_CASE("files with warnings of libjpeg are decoded if no pixels are missing") {
  const auto expected = Jpeg::decode(dist_test::jpeg_rgb);
  const auto equals = [&](const Bytes& file) {
    const auto pixels = Jpeg::decode(file);
    return std::equal(pixels.data(), pixels.data() + pixels.size(), expected.data());
  };
  Bytes longer = dist_test::jpeg_rgb;  // superfluous bytes before the end
  longer.insert(longer.end() - 2, 214, std::byte{0});
  CHECK(equals(longer));
  Bytes revision = dist_test::jpeg_rgb;  // JFIF revision 9.01 instead of 1.01
  REQUIRE(revision[11] == std::byte{1});
  revision[11] = std::byte{9};
  CHECK(equals(revision));
  Bytes behind = dist_test::jpeg_rgb;
  behind.insert(behind.end(), 9, std::byte{1});
  CHECK(equals(behind));
  for (std::size_t size = 2; size + 2 < revision.size(); size += 7) {
    CAPTURE(size);
    refuse(Bytes(revision.begin(), revision.begin() + static_cast<std::ptrdiff_t>(size)), "File 'a.jpg' ");
  }
}

TEST_CASE("invalid JPEG files are rejected by name") {
  refuse(dist_test::bytes("no image"), "File 'a.jpg' is not a valid JPEG image");
  refuse({}, "File 'a.jpg' is not a valid JPEG image");
  refuse(dist_test::png_rgb, "File 'a.jpg' is not a valid JPEG image");
  refuse(dist_test::jpeg_rgb, "(8 x 9 pixels of 3 channels, at most 215 elements are read)", 215);
  for (std::size_t size = 0; size + 2 < dist_test::jpeg_rgb.size(); size += 7) {
    CAPTURE(size);
    refuse(Bytes(dist_test::jpeg_rgb.begin(), dist_test::jpeg_rgb.begin() + static_cast<std::ptrdiff_t>(size)),
           "File 'a.jpg' ");
  }
}
