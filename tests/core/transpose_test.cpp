#include <dist/core/transpose.hpp>

#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

using dist::InvalidArgument;
using dist::Shape;
using dist::Tensor;
using dist::transpose;

namespace {

using Axes = std::vector<std::size_t>;

std::vector<int> elements(const Tensor<int>& tensor) { return {tensor.data(), tensor.data() + tensor.size()}; }

}  // namespace

TEST_CASE("a matrix is transposed") {
  const Tensor<int> matrix{{2, 3}, {1, 2, 3, 4, 5, 6}};
  const Tensor<int> columns = transpose(matrix, Axes{1, 0});
  CHECK(columns.shape() == Shape{3, 2});
  CHECK(elements(columns) == std::vector<int>{1, 4, 2, 5, 3, 6});
  CHECK(elements(transpose(matrix, Axes{0, 1})) == elements(matrix));
}

TEST_CASE("each element has its indices in the order of the axes") {
  Tensor<int> from{Shape{2, 3, 4, 5}};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i);
  const Tensor<int> to = transpose(from, Axes{2, 3, 1, 0});
  REQUIRE(to.shape() == Shape{4, 5, 3, 2});
  for (std::size_t a = 0; a < 2; ++a)
    for (std::size_t b = 0; b < 3; ++b)
      for (std::size_t c = 0; c < 4; ++c)
        for (std::size_t d = 0; d < 5; ++d)
          CHECK(to[((c * 5 + d) * 3 + b) * 2 + a] == from[((a * 3 + b) * 4 + c) * 5 + d]);
}

TEST_CASE("scalars and empty tensors can be transposed") {
  CHECK(transpose(Tensor<int>{Shape{}, {7}}, Axes{})[0] == 7);
  CHECK(transpose(Tensor<int>{Shape{0, 3}}, Axes{1, 0}).shape() == Shape{3, 0});
}

TEST_CASE("an invalid permutation of axes is rejected") {
  const Tensor<int> matrix{{2, 3}, {1, 2, 3, 4, 5, 6}};
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{0, 0}, Axes{0, 2}, Axes{0, 1, 2}})
    CHECK_THROWS_AS(transpose(matrix, axes), InvalidArgument);
  CHECK_THROWS_WITH_AS(transpose(matrix, Axes{0, 2}), doctest::Contains("[2, 3], the order of axes is {0, 2}"),
                       InvalidArgument);
}
