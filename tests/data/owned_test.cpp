#include <dist/data/owned.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <data/sequences.hpp>
#include <support/allocations.hpp>

using dist::Shape;
using dist::Tensor;
using dist::TensorView;
using dist::data::Example;
using dist::data::Owned;
using dist::data::Owning;
using dist_test::iota;
using dist_test::values;

namespace {

using View = TensorView<const int>;
static_assert(std::is_same_v<Owned<View>, Tensor<int>> && std::is_same_v<Owned<TensorView<float>>, Tensor<float>>);
static_assert(std::is_same_v<Owned<int>, int> && std::is_same_v<Owned<Tensor<int>>, Tensor<int>>);
static_assert(std::is_same_v<Owned<Example<View, int>>, Example<Tensor<int>, int>>);

}  // namespace

TEST_CASE("copies of views own their data, in every structure (spec I30)") {
  using Element = std::tuple<View, std::pair<int, std::array<View, 2>>, std::string_view>;
  Owned<Element> copy;
  static_assert(
      std::is_same_v<Owned<Element>, std::tuple<Tensor<int>, std::pair<int, std::array<Tensor<int>, 2>>, std::string>>);
  {
    const Tensor<int> numbers = iota<int>({4, 2});
    const std::string name(100, 'x');
    const Element element{numbers.view().rows(1, 2), {7, {numbers.view().row(0), numbers.view().row(3)}}, name};
    Owning<Element>::copy(copy, element);
    CHECK(std::get<0>(copy).data() != numbers.data() + 2);
  }
  CHECK(std::get<0>(copy).shape() == Shape{2, 2});
  CHECK(values(std::get<0>(copy)) == std::vector<int>{2, 3, 4, 5});
  CHECK(std::get<1>(copy).first == 7);
  CHECK(values(std::get<1>(copy).second[0]) == std::vector<int>{0, 1});
  CHECK(values(std::get<1>(copy).second[1]) == std::vector<int>{6, 7});
  CHECK(std::get<2>(copy) == std::string(100, 'x'));
}

TEST_CASE("copies reuse memory, and may be empty") {
  const Tensor<float> features = iota<float>({3, 4});
  using Element = Example<TensorView<const float>, int>;
  Owned<Element> copy{Tensor<float>{Shape{3, 4}}, 0};
  const std::size_t before = allocations;
  Owning<Element>::copy(copy, {features.view().row(2), 5});
  CHECK(allocations == before);
  CHECK(values(copy.x) == std::vector<float>{8, 9, 10, 11});
  CHECK(copy.y == 5);
  Owning<Element>::copy(copy, {features.view().rows(3, 0), 6});
  CHECK(copy.x.shape() == Shape{0, 4});
}
