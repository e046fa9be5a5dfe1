#include <dist/data/images.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <dist/data/tensor_slices.hpp>

#include <data/sequences.hpp>

namespace data = dist::data;
using dist::Tensor;
using dist_test::collect;
using dist_test::values;

namespace {

/// Shifts `image` [height, width, channels] pixel by pixel. Pixels from outside are 0.
std::vector<int> moved(const std::vector<int>& image, int height, int width, int channels, int down, int right) {
  std::vector<int> result(image.size());
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        if (y + down >= 0 && y + down < height && x + right >= 0 && x + right < width)
          result[static_cast<std::size_t>((y * width + x) * channels + c)] =
              image[static_cast<std::size_t>(((y + down) * width + x + right) * channels + c)];
  return result;
}

/// Checks that each of `count` equal images is shifted by up to `padding`, and that all shifts are equally likely,
/// within five standard deviations.
void check(int height, int width, int channels, int padding, std::size_t count) {
  CAPTURE(padding);
  std::vector<int> image;
  for (int i = 0; i < height * width * channels; ++i) image.push_back(i + 1);
  Tensor<int> images{
      {count, static_cast<std::size_t>(height), static_cast<std::size_t>(width), static_cast<std::size_t>(channels)}};
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = image[i % image.size()];
  std::map<std::vector<int>, double> ways;  // several shifts may give an empty image
  for (int down = -padding; down <= padding; ++down)
    for (int right = -padding; right <= padding; ++right) ++ways[moved(image, height, width, channels, down, right)];
  std::map<std::vector<int>, int> found;
  const auto dataset = data::tensor_slices(std::move(images)) | data::random_crop(static_cast<std::size_t>(padding), 5);
  for (const auto& crop : dataset.epoch(0)) ++found[values(crop)];
  CHECK(found.size() == ways.size());
  for (const auto& [crop, times] : found) {
    REQUIRE(ways.count(crop) == 1);
    const double p = ways[crop] / ((2 * padding + 1) * (2 * padding + 1));
    const double off = times - static_cast<double>(count) * p;
    CHECK(off * off < 25 * static_cast<double>(count) * p * (1 - p));
  }
}

}  // namespace

TEST_CASE("random_crop shifts uniformly along both axes, and inserts zeros") {
  check(3, 4, 2, 1, 2000);
  check(4, 3, 1, 2, 4000);
}

TEST_CASE("a padding larger than the image may remove all its pixels") { check(2, 1, 3, 3, 6000); }

TEST_CASE("with the same seed, flips and crops are independent") {
  Tensor<int> images{{2000, 3, 2, 1}};
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<int>(i % 2) + 1;
  int flipped = 0;
  int moved_down = 0;
  const auto dataset = data::tensor_slices(std::move(images)) | data::random_flip(1) | data::random_crop(1, 1);
  for (const auto& crop : dataset.epoch(0)) {
    if (crop[0] != 0 || crop[1] != 0 || crop[2] == 0 || crop[3] == 0) continue;  // other shifts
    ++moved_down;
    flipped += crop[2] == 2 ? 1 : 0;
  }
  CHECK(moved_down > 150);  // the mean is 2000 / 9 = 222
  const double off = flipped - moved_down / 2.0;
  CHECK(off * off < 25 * moved_down / 4.0);
}

TEST_CASE("random_crop rejects a padding of 0, and elements other than images") {
  CHECK_THROWS_WITH_AS(static_cast<void>(data::random_crop(0)), doctest::Contains("padding is 0"),
                       dist::InvalidArgument);
  const auto rows = data::tensor_slices(Tensor<float>{dist::Shape{1, 2}}) | data::random_crop(1);
  CHECK_THROWS_WITH_AS(collect(rows),
                       doctest::Contains("random_crop received an element that is not an image (its shape is [2]"),
                       dist::ShapeMismatch);
}
