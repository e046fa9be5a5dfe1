// Folders of PNG and JPEG files.
#include <cstddef>
#include <string>
#include <vector>

#include <dist/data/image_folder.hpp>
#include <dist/io/jpeg.hpp>
#include <dist/io/png.hpp>

#include <doctest/doctest.h>

#include <data/sequences.hpp>
#include <io/image_bytes.hpp>
#include <support/temporary_folder.hpp>

namespace {

std::string text_of(const dist_test::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("image_folder reads both formats in one folder") {
  const support::TemporaryFolder folder;
  folder.write("a/1.png", text_of(dist_test::png_rgb));
  folder.write("a/2.jpg", text_of(dist_test::jpeg_rgb));
  folder.write("b/3.JPEG", text_of(dist_test::jpeg_gray));
  const auto dataset = dist::data::image_folder<dist::io::Png, dist::io::Jpeg>(folder.path());
  const auto examples = dist_test::collect(dataset);
  REQUIRE(examples.size() == 3);
  CHECK(examples[0].x.shape() == dist::Shape{3, 2, 3});
  CHECK(examples[0].x[0] == 1.0F);
  CHECK(examples[1].x.shape() == dist::Shape{8, 9, 3});
  CHECK(examples[2].y == 1);
  folder.write("a/1.png", "no image");
  CHECK_THROWS_WITH_AS(dist_test::collect(dataset), doctest::Contains("/a/1.png' is not a valid PNG image"),
                       dist::FileError);
}
