#include <dist/nn/geometry.hpp>

#include <type_traits>

#include <dist/core/static_shape.hpp>
#include <dist/nn/activation.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("Valid has windows inside the image only, and drops the border") {
  CHECK(nn::Valid::output(28, 3, 1) == 26);
  CHECK(nn::Valid::output(5, 2, 2) == 2);
  CHECK(nn::Valid::output(3, 3, 1) == 1);
  CHECK(nn::Valid::output(2, 3, 1) == 0);
}

TEST_CASE("Same has output ceil(extent / stride), and pads an odd zero at the end") {
  CHECK(nn::Same::output(28, 3, 1) == 28);
  CHECK(nn::Same::output(5, 3, 2) == 3);
  CHECK(nn::Same::before(28, 3, 1) == 1);
  CHECK(nn::Same::before(28, 2, 1) == 0);  // one zero in total
  CHECK(nn::Same::before(6, 3, 2) == 0);   // (3 - 1) * 2 + 3 - 6 = 1 zero in total
  CHECK(nn::Same::before(4, 1, 3) == 0);   // windows do not reach the end
}

TEST_CASE("Pad adds a number of zeros on each side, or before and after") {
  CHECK(nn::Pad<3>::output(224, 7, 2) == 112);  // (224 + 6 - 7) / 2 + 1
  CHECK(nn::Pad<3>::before(224, 7, 2) == 3);
  CHECK(nn::Pad<0, 2>::output(4, 3, 1) == 4);
  CHECK(nn::Pad<0, 2>::before(4, 3, 1) == 0);
  CHECK(nn::Pad<1>::output(1, 4, 1) == 0);
  using Convolution = nn::Conv2DGeometry<dist::StaticShape<8, 9, 1>, 1, 7, 2, nn::Pad<3>, nn::Linear>;
  CHECK(Convolution::output_height == 4);
  CHECK(Convolution::pad_top == 3);
  CHECK(Convolution::pad_bottom == 2);  // the last window starts at row 3 and ends with row 9
  CHECK(Convolution::pad_right == 3);
}

TEST_CASE("windows of sequences have the height 1, without padding above and below") {
  using Image = nn::SequenceImage<dist::StaticShape<7, 2>>::Type;
  using Convolution = nn::Conv2DGeometry<Image, 5, 4, 2, nn::Pad<1, 2>, nn::Linear, 1, true, true>;
  CHECK(std::is_same_v<Convolution::Output, dist::StaticShape<1, 4, 5>>);
  CHECK(Convolution::window_height == 1);
  CHECK(Convolution::pad_top == 0);
  CHECK(Convolution::pad_bottom == 0);
  CHECK(Convolution::pad_left == 1);
  CHECK(Convolution::pad_right == 2);
  using Means = nn::PoolGeometry<Image, 3, 3, nn::Pad<1>, nn::CountPadding, true>;
  CHECK(Means::counted(1, 2) == 3);
}

TEST_CASE("the output of a transposed convolution has the extents that its convolution reduces to the input's") {
  using Same = nn::Conv2DTransposeGeometry<dist::StaticShape<3, 4, 2>, 5, 3, 2, nn::Same, nn::Linear>;
  CHECK(std::is_same_v<Same::Output, dist::StaticShape<6, 8, 5>>);
  CHECK(std::is_same_v<Same::Swapped::Output, dist::StaticShape<3, 4, 2>>);
  using Wide = nn::Conv2DTransposeGeometry<dist::StaticShape<3, 4, 2>, 5, 3, 2, nn::Valid, nn::Linear>;
  CHECK(std::is_same_v<Wide::Output, dist::StaticShape<7, 9, 5>>);
  CHECK(std::is_same_v<Wide::Swapped::Output, dist::StaticShape<3, 4, 2>>);
  using Narrow = nn::Conv2DTransposeGeometry<dist::StaticShape<3, 4, 2>, 5, 2, 3, nn::Valid, nn::Linear>;
  CHECK(std::is_same_v<Narrow::Output, dist::StaticShape<9, 12, 5>>);
  CHECK(std::is_same_v<Narrow::Swapped::Output, dist::StaticShape<3, 4, 2>>);
}

TEST_CASE("groups divide channels and filters") {
  using Grouped = nn::Conv2DGeometry<dist::StaticShape<4, 4, 6>, 9, 3, 1, nn::Valid, nn::Linear, 3>;
  CHECK(Grouped::group_channels == 2);
  CHECK(Grouped::group_filters == 3);
  CHECK(Grouped::describe() == "images 4 x 4 x 6, window 3, stride 1, 9 filters in 3 groups");
}

TEST_CASE("windows_reach_image is false if a window covers no element of the image") {
  using Image = dist::StaticShape<4, 4, 1>;
  CHECK(nn::PoolGeometry<Image, 3, 2, nn::Same>::windows_reach_image);
  CHECK(nn::PoolGeometry<Image, 3, 2, nn::Pad<1>>::windows_reach_image);
  CHECK_FALSE(nn::PoolGeometry<Image, 2, 1, nn::Pad<2, 0>>::windows_reach_image);  // the first one
  CHECK_FALSE(nn::PoolGeometry<Image, 2, 1, nn::Pad<0, 2>>::windows_reach_image);  // the last one
}

TEST_CASE("global pooling has one window over all pixels") {
  using All = nn::GlobalPoolGeometry<nn::ImageGeometry<dist::StaticShape<5, 3, 2>>>;
  CHECK(All::height * All::width == 15);
  CHECK(All::channels == 2);
  CHECK(All::output_height * All::output_width == 1);
  CHECK(All::pad_top == 0);
  CHECK(All::windows_reach_image);
}

TEST_CASE("geometries describe themselves for error messages") {
  using Convolution = nn::Conv2DGeometry<dist::StaticShape<28, 26, 3>, 8, 5, 2, nn::Same, nn::Relu>;
  CHECK(Convolution::describe() == "images 28 x 26 x 3, window 5, stride 2, 8 filters");
  CHECK(Convolution::output_width == 13);
  CHECK(Convolution::pad_top == 1);  // (14 - 1) * 2 + 5 - 28 = 3 zeros in total
  CHECK(Convolution::pad_bottom == 2);
  CHECK(Convolution::pad_left == 1);  // (13 - 1) * 2 + 5 - 26 = 3
  CHECK(Convolution::pad_right == 2);
  CHECK(nn::DenseGeometry<7, 9, nn::Linear>::describe() == "7 inputs, 9 units");
  CHECK(nn::PoolGeometry<dist::StaticShape<5, 7, 2>, 2, 2>::output_width == 3);
  CHECK(nn::PoolGeometry<dist::StaticShape<5, 7, 2>, 2, 2>::pad_bottom == 0);
}
