#include <dist/io/png.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <io/bytes.hpp>
#include <io/image_bytes.hpp>

using dist::FileError;
using dist::InvalidArgument;
using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::io::encode_png;
using dist::io::Png;
using dist_test::Bytes;

namespace {

using Values = std::vector<unsigned>;

Values values(const Tensor<std::uint8_t>& pixels) { return Values(pixels.data(), pixels.data() + pixels.size()); }

void refuse(const Bytes& bytes, const char* because, std::size_t max_elements = 1000) {
  CHECK_THROWS_WITH_AS(static_cast<void>(Png::decode(bytes, 3, "a.png", max_elements)), doctest::Contains(because),
                       FileError);
}

}  // namespace

TEST_CASE("pixels of another program's encoder are decoded, from colours and a palette") {
  for (const Bytes& file : {dist_test::png_rgb, dist_test::png_palette}) {
    const auto pixels = Png::decode(file);
    CHECK(pixels.shape() == Shape{3, 2, 3});
    CHECK(values(pixels) == Values{255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3, 250, 251, 252, 7, 7, 7});
  }
}

TEST_CASE("channels are converted") {
  CHECK(values(Png::decode(dist_test::png_gray, 1)) == Values{0, 128, 255});
  CHECK(values(Png::decode(dist_test::png_gray, 3)) == Values{0, 0, 0, 128, 128, 128, 255, 255, 255});
  CHECK(values(Png::decode(dist_test::png_gray, 2)) == Values{0, 255, 128, 255, 255, 255});
  CHECK(values(Png::decode(dist_test::png_rgba, 4)) == Values{10, 20, 30, 255, 40, 50, 60, 0, 255, 255, 255, 255});
  // Transparent pixels keep their colour.
  CHECK(values(Png::decode(dist_test::png_rgba, 3)) == Values{10, 20, 30, 40, 50, 60, 255, 255, 255});
  CHECK(values(Png::decode(dist_test::png_transparent, 3)) == Values{40, 50, 60, 10, 20, 30});
  CHECK(values(Png::decode(dist_test::png_transparent, 4)) == Values{40, 50, 60, 255, 10, 20, 30, 0});
  CHECK(values(Png::decode(dist_test::png_rgb, 4))[3] == 255);
  // ITU-R BT.601: 0.299 red, 0.587 green and 0.114 blue, rounded, like Pillow's convert("L").
  CHECK(values(Png::decode(dist_test::png_rgb, 1)) == Values{76, 150, 29, 2, 251, 7});
  CHECK(values(Png::decode(dist_test::png_transparent, 2)) == Values{48, 255, 18, 0});
  CHECK_THROWS_WITH_AS(static_cast<void>(Png::decode(dist_test::png_rgb, 5)), doctest::Contains("with 5 channels"),
                       InvalidArgument);
}

TEST_CASE("samples are decoded as stored; for 16 bits the high byte is used") {
  CHECK(values(Png::decode(dist_test::png_16_bits, 3)) == Values{128, 128, 0, 255, 127, 1});
  CHECK(values(Png::decode(dist_test::png_gamma, 1)) == Values{100, 200});
}

TEST_CASE("interlaced images are decoded") {
  const auto pixels = Png::decode(dist_test::png_interlaced, 1);
  REQUIRE(pixels.shape() == Shape{6, 9, 1});
  for (std::size_t i = 0; i < pixels.size(); ++i) CHECK(pixels[i] == i);
}

TEST_CASE("encoded images are decoded unchanged, for every number of channels") {
  for (std::size_t channels = 1; channels <= 4; ++channels) {
    Tensor<std::uint8_t> pixels{{5, 7, channels}};
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(37 * i);
    const std::string file = encode_png(pixels);
    const auto read = Png::decode(std::as_bytes(std::span{file}), channels);
    CHECK(read.shape() == pixels.shape());
    CHECK(values(read) == values(pixels));
  }
}

TEST_CASE("invalid PNG files are rejected by name") {
  refuse(dist_test::bytes("no image"), "File 'a.png' is not a valid PNG image");
  refuse({}, "File 'a.png' is not a valid PNG image");
  refuse(dist_test::jpeg_rgb, "File 'a.png' is not a valid PNG image (Not a PNG file)");
  refuse(dist_test::png_rgb, "(3 x 2 pixels of 3 channels, at most 17 elements are read)", 17);
  // Truncated at any byte before the end of the pixels. The last chunk, of 12 bytes, contains no pixels.
  for (std::size_t size = 0; size + 16 < dist_test::png_rgb.size(); ++size) {
    CAPTURE(size);
    refuse(Bytes(dist_test::png_rgb.begin(), dist_test::png_rgb.begin() + static_cast<std::ptrdiff_t>(size)),
           "is not a valid PNG image");
  }
  Bytes changed = dist_test::png_rgb;
  changed[45] ^= std::byte{1};  // inside the compressed pixels
  refuse(changed, "is not a valid PNG image");
}

TEST_CASE("encode_png rejects arrays other than images") {
  for (const Shape& shape : {Shape{4, 4}, Shape{0, 4, 3}, Shape{1, 2, 2, 3}})
    CHECK_THROWS_AS(static_cast<void>(encode_png(Tensor<std::uint8_t>{shape})), ShapeMismatch);
  CHECK_THROWS_AS(static_cast<void>(encode_png(Tensor<std::uint8_t>{{1, 1, 5}})), InvalidArgument);
}
