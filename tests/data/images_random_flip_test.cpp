#include <dist/data/images.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <doctest/doctest.h>

#include <dist/data/tensor_slices.hpp>

#include <data/sequences.hpp>

namespace data = dist::data;
using dist::Tensor;
using dist_test::collect;
using dist_test::values;

namespace {

using Image = std::vector<int>;

// Two rows, two columns, two channels.
const Image straight{1, 10, 2, 20, 3, 30, 4, 40};
const Image mirrored{2, 20, 1, 10, 4, 40, 3, 30};
const Image upside_down{3, 30, 4, 40, 1, 10, 2, 20};
const Image turned{4, 40, 3, 30, 2, 20, 1, 10};

/// Counts the results for 1000 images `straight`.
std::map<Image, int> counts(auto step) {
  Tensor<int> images{{1000, 2, 2, 2}};
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = straight[i % 8];
  std::map<Image, int> found;
  const auto dataset = data::tensor_slices(std::move(images)) | step;
  for (const auto& image : dataset.epoch(0)) ++found[values(image)];
  return found;
}

/// True if `count` is within five standard deviations of the mean of `draws` draws with probability `p`.
bool is_likely(int count, double draws, double p) {
  const double off = count - draws * p;
  return off * off < 25 * draws * p * (1 - p);
}

}  // namespace

TEST_CASE("horizontal flips mirror half of the images") {
  auto found = counts(data::random_flip(3));
  CHECK(found.size() == 2);
  CHECK(is_likely(found[straight], 1000, 0.5));
  CHECK(is_likely(found[mirrored], 1000, 0.5));
}

TEST_CASE("vertical flips apply to half of the images, combinations of both to a quarter each") {
  auto found = counts(data::random_flip(3, data::Flip::vertical));
  CHECK(found.size() == 2);
  CHECK(is_likely(found[upside_down], 1000, 0.5));
  found = counts(data::random_flip(3, data::Flip::both));
  CHECK(found.size() == 4);
  for (const Image& image : {straight, mirrored, upside_down, turned}) CHECK(is_likely(found[image], 1000, 0.25));
}

TEST_CASE("labels and shapes are kept, and epochs differ") {
  Tensor<float> images{{64, 1, 2, 1}};
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i);
  const auto dataset = data::tensor_slices(images, dist_test::iota<std::int32_t>({64})) | data::random_flip(1);
  std::vector<float> first;
  int label = 0;
  for (const auto& [x, y] : dataset.epoch(0)) {
    CHECK(y[0] == label++);
    CHECK(x.shape() == dist::Shape{1, 2, 1});
    CHECK(x[0] + x[1] == static_cast<float>(4 * y[0] + 1));
    first.push_back(x[0]);
  }
  std::vector<float> again;
  for (const auto& example : dataset.epoch(0)) again.push_back(example.x[0]);
  CHECK(again == first);
  std::vector<float> second;
  for (const auto& example : dataset.epoch(1)) second.push_back(example.x[0]);
  CHECK(second != first);
}

TEST_CASE("random_flip rejects elements other than images, but accepts an image without pixels") {
  const auto rows = data::tensor_slices(Tensor<float>{dist::Shape{1, 2}}) | data::random_flip();
  CHECK_THROWS_WITH_AS(collect(rows),
                       doctest::Contains("random_flip received an element that is not an image (its shape is [2]"),
                       dist::ShapeMismatch);
  const auto empty =
      data::tensor_slices(Tensor<float>{dist::Shape{8, 2, 0, 3}}) | data::random_flip(0, data::Flip::both);
  CHECK(collect(empty).size() == 8);
}
