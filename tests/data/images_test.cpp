#include <dist/data/images.hpp>

#include <concepts>

#include <doctest/doctest.h>

using dist::Tensor;
using dist::TensorView;
using dist::data::Example;
using dist::data::detail::with_image;

TEST_CASE("the image is the element, or the x of an example") {
  const auto first = [](auto image) { return image.data()[0]; };
  Tensor<float> image{{1, 2, 1}, {3, 4}};
  CHECK(with_image("step", image, first) == 3);
  CHECK(with_image("step", TensorView<float>{image}, first) == 3);
  const Example<TensorView<const float>, int> example{image, 7};
  const auto changed = with_image("step", example, first);
  static_assert(std::same_as<decltype(changed), const Example<float, int>>);
  CHECK(changed.x == 3);
  CHECK(changed.y == 7);
}

TEST_CASE("arrays of another rank than 3 are rejected") {
  const Tensor<float> batch{dist::Shape{2, 1, 2, 1}};
  CHECK_THROWS_WITH_AS(static_cast<void>(with_image("random_flip", batch, [](auto) { return 0; })),
                       doctest::Contains("random_flip received an element that is not an image (its shape is [2, 1, 2, "
                                         "1], expected [height, width, channels])"),
                       dist::ShapeMismatch);
}
