#include <dist/nn/hlo/rows.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <tuple>

#include <dist/hlo/dynamic.hpp>
#include <hlo/run.hpp>

namespace hlo = dist::hlo;
namespace detail = dist::nn::detail;
using dist::Tensor;

TEST_CASE("index_of_largest returns the first of equal numbers, and labels out of range become -1") {
  constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
  using Scores = hlo::Traced<float, 6, 3>;
  using Labels = hlo::Traced<std::uint64_t, 4>;
  const Tensor<float> scores{{6, 3},
                             {1, 5, 5, -1, -2, -3, 0, not_a_number, 9, not_a_number, 2, 3, 4, 4, not_a_number,
                              not_a_number, not_a_number, not_a_number}};
  const auto [largest, is_largest, classes] = testing::run<Scores, Labels>(
      1,
      [](Scores given, Labels labels) {
        const auto index = detail::index_of_largest(given);
        return std::tuple{index, detail::is_at<Scores>(index), detail::classes_of(labels, 3)};
      },
      scores, Tensor<std::uint64_t>{{4}, {0, 2, 3, 0xFFFF'FFFF'0000'0001}});
  CHECK(largest == Tensor<std::int32_t>{{6}, {1, 0, 2, 0, 0, 0}});
  for (std::size_t row = 0; row < 6; ++row) {
    CHECK(dist::nn::index_of_largest(scores.elements().subspan(3 * row, 3)) == static_cast<std::size_t>(largest[row]));
    for (std::size_t i = 0; i < 3; ++i) CHECK(is_largest(row, i) == (i == static_cast<std::size_t>(largest[row])));
  }
  CHECK(classes == Tensor<std::int32_t>{{4}, {0, 2, -1, -1}});
}

TEST_CASE("an array of a program has a shape for checks, and can be reshaped") {
  const hlo::Trace trace{1, 4};
  const hlo::Traced<float, hlo::batch, 2, 3> images{0};
  CHECK(detail::shape_only(hlo::Dynamic<float>{images}).shape() == dist::Shape{4, 2, 3});
  using Matrix = detail::MatrixOf<hlo::Traced<float, hlo::batch, 2, 3>>;
  CHECK(std::is_same_v<Matrix, hlo::Traced<float, hlo::batch, 6>>);
  CHECK(std::is_same_v<detail::MatrixOf<hlo::Traced<float, 4, 2>>, hlo::Traced<float, 4, 2>>);
  CHECK(hlo::untyped::type_of(detail::in_shape_of<Matrix>(images).value()).shape == dist::Shape{4, 6});
}
