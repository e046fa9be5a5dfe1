#include <dist/variable/id_list.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using dist::Shape;
using dist::Tensor;
using dist::detail::IdList;

static_assert(dist::RowIds<std::vector<std::int64_t>> && dist::RowIds<std::uint8_t[3]>);
static_assert(dist::RowIds<Tensor<int>> && dist::RowIds<dist::TensorView<const std::uint32_t>>);
static_assert(!dist::RowIds<std::vector<float>> && !dist::RowIds<Tensor<bool>> && !dist::RowIds<std::string>);
static_assert(!dist::RowIds<int>);

TEST_CASE("ids are converted to 64 bits and keep their shape") {
  const Tensor<std::int32_t> ids{{2, 1}, {3, -1}};
  const IdList list{ids};
  CHECK(list.shape() == Shape{2, 1});
  REQUIRE(list.ids().size() == 2);
  CHECK(list.ids()[0] == 3);
  CHECK(list.ids()[1] == -1);
  const std::vector<std::uint8_t> bytes{250};
  CHECK(IdList{bytes}.shape() == Shape{1});
}

TEST_CASE("64-bit ids are not copied") {
  const std::vector<std::int64_t> ids{7, 8};
  CHECK(IdList{ids}.ids().data() == ids.data());
}

TEST_CASE("the shape of rows is the shape of the ids followed by a row's") {
  const Tensor<int> ids{{2, 3}};
  CHECK(IdList{ids}.shape_of_rows({10, 4, 5}) == Shape{2, 3, 4, 5});
  CHECK(IdList{Tensor<int>{Shape{}}}.shape_of_rows({10, 4}) == Shape{4});
  CHECK_THROWS_AS(static_cast<void>(IdList{ids}.shape_of_rows({1, 1, 1, 1, 1, 1})), dist::InvalidArgument);
}
