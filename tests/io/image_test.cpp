#include <dist/io/image.hpp>

#include <doctest/doctest.h>

using dist::FileError;
using dist::Shape;
using dist::io::detail::make_pixels;

TEST_CASE("make_pixels allocates pixels up to the limit") {
  CHECK(make_pixels("a.png", 2, 3, 4, 24).shape() == Shape{2, 3, 4});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(make_pixels("a.png", 2, 3, 4, 23)),
      doctest::Contains("File 'a.png' announces an image that is too large (2 x 3 pixels of 4 channels, at "
                        "most 23 elements are read)"),
      FileError);
  CHECK_THROWS_AS(static_cast<void>(make_pixels("a.png", 0xFFFFFFFF, 0xFFFFFFFF, 4, 1 << 30)), FileError);
  CHECK_THROWS_WITH_AS(static_cast<void>(make_pixels("a.png", 0, 1, 3, 100)),
                       doctest::Contains("File 'a.png' announces an image without pixels (it has 0 rows of 1)"),
                       FileError);
}
