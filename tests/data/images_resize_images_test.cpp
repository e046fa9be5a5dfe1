#include <dist/data/images.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <dist/data/batch.hpp>
#include <dist/data/tensor_slices.hpp>

#include <data/sequences.hpp>

namespace data = dist::data;
using dist::Shape;
using dist::Tensor;
using dist_test::collect;
using dist_test::values;

namespace {

/// Returns the only image of a dataset, resized.
template <class T>
Tensor<T> resized(const Shape& shape, const std::vector<T>& pixels, std::size_t height, std::size_t width) {
  const auto dataset = data::tensor_slices(Tensor<T>{shape.stacked(1), pixels}) | data::resize_images(height, width);
  auto all = collect(dataset);
  REQUIRE(all.size() == 1);
  return std::move(all[0]);
}

using Floats = std::vector<float>;

}  // namespace

TEST_CASE("pixels are interpolated between the centres of their neighbours") {
  // Twice as wide: the new centres are at 0.25, 0.75, 1.25 and 1.75, the old ones at 0.5 and 1.5.
  CHECK(values(resized<float>({1, 2, 1}, {0, 4}, 1, 4)) == Floats{0, 1, 3, 4});
  // Half as wide: each new centre is half-way between two old ones.
  CHECK(values(resized<float>({1, 4, 1}, {0, 4, 10, 20}, 1, 2)) == Floats{2, 15});
  // A third: each new centre is an old one.
  CHECK(values(resized<float>({1, 6, 1}, {0, 1, 2, 3, 4, 5}, 1, 2)) == Floats{1, 4});
  // On both axes, the interpolation is a product.
  CHECK(values(resized<float>({2, 2, 1}, {0, 4, 8, 12}, 4, 4)) ==
        Floats{0, 1, 3, 4, 2, 3, 5, 6, 6, 7, 9, 10, 8, 9, 11, 12});
  CHECK(values(resized<float>({2, 1, 1}, {3, 5}, 1, 3)) == Floats{4, 4, 4});
}

TEST_CASE("channels are independent, and an image of the same size is unchanged") {
  CHECK(values(resized<float>({1, 2, 2}, {0, 100, 4, 200}, 1, 4)) == Floats{0, 100, 1, 125, 3, 175, 4, 200});
  const Floats pixels{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  CHECK(values(resized<float>({2, 3, 2}, pixels, 2, 3)) == pixels);
}

TEST_CASE("bytes are rounded") {
  CHECK(values(resized<std::uint8_t>({1, 2, 1}, {0, 255}, 1, 4)) == std::vector<std::uint8_t>{0, 64, 191, 255});
}

TEST_CASE("labels are kept, and images can be batched") {
  const auto batches = data::tensor_slices(Tensor<float>{{3, 5, 4, 2}}, dist_test::iota<std::int32_t>({3})) |
                       data::resize_images(2, 3) | data::batch(2);
  const auto all = collect(batches);
  REQUIRE(all.size() == 2);
  CHECK(all[0].x.shape() == Shape{2, 2, 3, 2});
  CHECK(values(all[1].y) == std::vector<std::int32_t>{2});
}

TEST_CASE("resize_images rejects a size of 0, and elements other than images with pixels") {
  CHECK_THROWS_WITH_AS(static_cast<void>(data::resize_images(0, 3)), doctest::Contains("the size is 0 x 3"),
                       dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(resized<float>({2, 0, 3}, {}, 1, 1), doctest::Contains("an image without pixels"),
                       dist::ShapeMismatch);
  CHECK_THROWS_WITH_AS(resized<float>({2, 2}, {1, 2, 3, 4}, 1, 1),
                       doctest::Contains("resize_images received an element that is not an image (its shape is [2, 2]"),
                       dist::ShapeMismatch);
}
