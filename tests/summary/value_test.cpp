#include <dist/summary/value.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <summary/wire.hpp>

using dist::InvalidArgument;
using dist::summary::histogram_value;
using dist::summary::Image;
using dist::summary::image_value;
using dist::summary::scalar_value;
using dist::summary::text_value;
using dist::summary::Value;
using dist_test::doubles_of;
using dist_test::extents_of;
using dist_test::Wire;

namespace {

using Numbers = std::vector<double>;

template <class T>
Numbers histogram(const std::vector<T>& values, std::size_t buckets) {
  const Value value = histogram_value(std::span{values}, buckets);
  CHECK(value.plugin == "histograms");
  CHECK(value.content.empty());
  const Wire tensor{value.tensor};
  CHECK(tensor.integer(1) == 2);  // DT_DOUBLE
  CHECK(extents_of(tensor) == std::vector<std::int64_t>{static_cast<std::int64_t>(buckets), 3});
  return doubles_of(tensor.bytes(4));
}

}  // namespace

TEST_CASE("a scalar is a float32 without axes") {
  const Value value = scalar_value(0.1);
  CHECK(value.plugin == "scalars");
  CHECK(value.content.empty());
  const Wire tensor{value.tensor};
  CHECK(tensor.integer(1) == 1);  // DT_FLOAT
  CHECK(tensor.bytes(2).empty());
  CHECK(dist_test::scalar_of(tensor) == 0.1F);
}

TEST_CASE("a histogram has rows of left edge, right edge and count; the greatest value is in the last bucket") {
  CHECK(histogram<double>({0, 0.5, 1, 1, 2, 4}, 4) == Numbers{0, 1, 2, 1, 2, 2, 2, 3, 1, 3, 4, 1});
  CHECK(histogram<int>({-2, 2}, 2) == Numbers{-2, 0, 1, 0, 2, 1});
  CHECK(histogram<float>({1.5F}, 1) == Numbers{1.5, 1.5, 1});
}

TEST_CASE("equal values are in the last bucket, and without values all buckets are empty") {
  CHECK(histogram<float>({3, 3, 3}, 2) == Numbers{3, 3, 0, 3, 3, 3});
  CHECK(histogram<float>({}, 2) == Numbers(6));
  CHECK_THROWS_WITH_AS(static_cast<void>(histogram_value(std::span<const float>{}, 0)),
                       doctest::Contains("A histogram has no buckets"), InvalidArgument);
}

TEST_CASE("non-finite values are ignored, and differences of finite values do not overflow") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(histogram<double>({infinity, 1, std::numeric_limits<double>::quiet_NaN(), 3, -infinity}, 2) ==
        Numbers{1, 2, 1, 2, 3, 1});
  CHECK(histogram<double>({infinity}, 1) == Numbers{0, 0, 0});
  constexpr double greatest = std::numeric_limits<double>::max();
  CHECK(histogram<double>({-greatest, 1, greatest}, 2) == Numbers{-greatest, 0, 1, 0, greatest, 2});
}

TEST_CASE("images are strings: width, height, then one PNG file each") {
  const std::string png = std::string("\x89PNG\r\n\x1a\n") + '\0' + "more";
  const Image images[] = {{3, 2, png}, {3, 2, png}};
  const Value value = image_value(images);
  CHECK(value.plugin == "images");
  const Wire tensor{value.tensor};
  CHECK(tensor.integer(1) == 7);  // DT_STRING
  CHECK(extents_of(tensor) == std::vector<std::int64_t>{4});
  CHECK(tensor.strings(8) == std::vector<std::string>{"3", "2", png, png});
  CHECK_THROWS_WITH_AS(static_cast<void>(image_value({})), doctest::Contains("has no images"), InvalidArgument);
  const Image gif[] = {{1, 1, "GIF89a"}};
  CHECK_THROWS_WITH_AS(static_cast<void>(image_value(gif)), doctest::Contains("is not a PNG file"), InvalidArgument);
}

TEST_CASE("text is one string without axes") {
  const Value value = text_value("**bold**\n");
  CHECK(value.plugin == "text");
  const Wire tensor{value.tensor};
  CHECK(tensor.integer(1) == 7);
  CHECK(tensor.bytes(2).empty());
  CHECK(tensor.strings(8) == std::vector<std::string>{"**bold**\n"});
}
