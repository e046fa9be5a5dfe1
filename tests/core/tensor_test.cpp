#undef DIST_CONTRACT_LEVEL
#define DIST_CONTRACT_LEVEL 2
#include <dist/core/tensor.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/float16.hpp>

#include "support/stderr_of.hpp"

using dist::Shape;
using dist::Tensor;
using dist::TensorView;

namespace {

/// Element i is i.
Tensor<int> counted(Shape shape) {
  Tensor<int> tensor(shape);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<int>(i);
  return tensor;
}

}  // namespace

TEST_CASE("a tensor is initially zero, aligned to a cache line, and has its shape") {
  const Tensor<float> tensor(Shape{3, 5});
  CHECK(tensor.shape() == Shape{3, 5});
  CHECK(tensor.size() == 15);
  CHECK(tensor.rows() == 3);
  CHECK(tensor.elements().size() == 15);
  CHECK(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0);
  for (const float element : tensor.elements()) CHECK(element == 0.0F);
}

TEST_CASE_TEMPLATE("a tensor holds elements of any number type (spec G04)", T, bool, std::int8_t, std::uint64_t,
                   dist::Float16, dist::BFloat16) {
  Tensor<T> tensor(Shape{2, 3});
  for (const T element : tensor.elements()) CHECK(element == T{0});
  tensor.view()(1, 2) = T{1};
  const Tensor<T> copy = tensor;
  CHECK(copy[5] == T{1});
  CHECK(copy[4] == T{0});
}

TEST_CASE("a default tensor is empty, a scalar tensor has one element") {
  CHECK(Tensor<float>{}.size() == 0);
  CHECK(Tensor<float>{}.rows() == 0);
  Tensor<float> scalar(Shape{});
  CHECK(scalar.size() == 1);
  CHECK(scalar.rows() == 1);
  scalar[0] = 2.5F;
  CHECK(scalar.view()() == 2.5F);
}

TEST_CASE("resize reuses memory that is large enough") {
  Tensor<int> tensor = counted(Shape{8, 4});
  const int* const memory = tensor.data();
  tensor.resize(Shape{3, 4});
  CHECK(tensor.data() == memory);
  CHECK(tensor.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) CHECK(tensor[i] == static_cast<int>(i));
  tensor.resize(Shape{8, 4});
  CHECK(tensor.data() == memory);
  tensor.resize(Shape{2, 16});
  CHECK(tensor.data() == memory);
  tensor.resize(Shape{0, 4});
  CHECK(tensor.size() == 0);
  tensor.resize(Shape{32});
  CHECK(tensor.data() == memory);
  tensor.resize(Shape{33});
  CHECK(tensor.size() == 33);
  tensor[32] = 7;
  CHECK(tensor.elements().back() == 7);
}

TEST_CASE("a copy has separate elements") {
  Tensor<int> original = counted(Shape{2, 3});
  Tensor<int> copy(original);
  CHECK(copy.shape() == Shape{2, 3});
  CHECK(copy.data() != original.data());
  original[4] = -1;
  for (std::size_t i = 0; i < 6; ++i) CHECK(copy[i] == static_cast<int>(i));
}

TEST_CASE("copy assignment reuses memory that is large enough") {
  Tensor<int> target(Shape{10});
  const int* const memory = target.data();
  const Tensor<int> source = counted(Shape{2, 3});
  target = source;
  CHECK(target.data() == memory);
  CHECK(target.shape() == Shape{2, 3});
  CHECK(target[5] == 5);
  const Tensor<int> larger = counted(Shape{4, 5});
  target = larger;
  CHECK(target.shape() == Shape{4, 5});
  CHECK(target[19] == 19);
  const Tensor<int>& self = target;
  target = self;
  CHECK(target.shape() == Shape{4, 5});
  CHECK(target[19] == 19);
}

TEST_CASE("a copy of an empty tensor is empty") {
  const Tensor<int> empty;
  const Tensor<int> copy(empty);
  CHECK(copy.size() == 0);
  Tensor<int> target = counted(Shape{4});
  target = empty;
  CHECK(target.size() == 0);
}

TEST_CASE("a move transfers the elements and leaves a usable empty tensor") {
  static_assert(std::is_nothrow_move_constructible_v<Tensor<int>> && std::is_nothrow_move_assignable_v<Tensor<int>>);
  Tensor<int> from = counted(Shape{2, 3});
  const int* const memory = from.data();
  Tensor<int> to(std::move(from));
  CHECK(to.data() == memory);
  CHECK(to.shape() == Shape{2, 3});
  CHECK(from.size() == 0);
  CHECK(from.elements().empty());
  const Tensor<int> copy_of_moved(from);
  CHECK(copy_of_moved.size() == 0);
  from.resize(Shape{4});
  from[3] = 8;
  CHECK(from.elements().back() == 8);
}

TEST_CASE("after a move assignment both tensors have memory for their shapes") {
  Tensor<int> from = counted(Shape{100});
  Tensor<int> to = counted(Shape{2});
  const int* const memory = from.data();
  to = std::move(from);
  CHECK(to.data() == memory);
  CHECK(to.shape() == Shape{100});
  CHECK(from.size() <= 2);
  for (int& element : from.elements()) element = -1;
  CHECK(to[99] == 99);
  Tensor<int>& self = to;
  to = std::move(self);
  CHECK(to.shape() == Shape{100});
  CHECK(to[99] == 99);
}

TEST_CASE("a view indexes row-major with one index per axis") {
  Tensor<int> tensor = counted(Shape{2, 3, 4});
  const TensorView<int> view = tensor.view();
  int expected = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) CHECK(view(i, j, k) == expected++);
  view(1, 2, 3) = -5;
  CHECK(tensor[23] == -5);
  CHECK(view[23] == -5);
}

TEST_CASE("rows and row are views of the same memory") {
  Tensor<int> tensor = counted(Shape{5, 2, 3});
  const TensorView<int> view = tensor;
  CHECK(view.rows() == 5);
  CHECK(view.row_size() == 6);
  const TensorView<int> middle = view.rows(1, 3);
  CHECK(middle.shape() == Shape{3, 2, 3});
  CHECK(middle.data() == tensor.data() + 6);
  CHECK(middle[0] == 6);
  CHECK(middle.elements().back() == 23);
  const TensorView<int> last = view.row(4);
  CHECK(last.shape() == Shape{2, 3});
  CHECK(last(0, 0) == 24);
  CHECK(last(1, 2) == 29);
  CHECK(view.rows(5, 0).size() == 0);
  CHECK(view.rows(0, 5).size() == 30);
  CHECK(view.row(2).row(1).row(0).shape() == Shape{});
  CHECK(view.row(2).row(1).row(0)() == 15);
}

TEST_CASE("a default view is empty, a scalar view has one row of one element") {
  CHECK(TensorView<float>{}.size() == 0);
  CHECK(TensorView<float>{}.data() == nullptr);
  float number = 3;
  const TensorView<float> scalar(&number, Shape{});
  CHECK(scalar.rows() == 1);
  CHECK(scalar.row_size() == 1);
  CHECK(scalar() == 3.0F);
}

TEST_CASE("a view of a span requires a matching number of elements") {
  std::vector<int> elements{0, 1, 2, 3, 4, 5};
  const TensorView<int> view(std::span<int>(elements), Shape{3, 2});
  CHECK(view(2, 1) == 5);
  CHECK_THROWS_WITH_AS((TensorView<int>(std::span<int>(elements), Shape{4, 2})),
                       "A tensor view does not fit its elements (6 elements for shape [4, 2]). "
                       "Give as many elements as the product of the extents.",
                       dist::ShapeMismatch);
  CHECK_THROWS_AS((TensorView<int>(std::span<int>(elements), Shape{5})), dist::ShapeMismatch);
}

TEST_CASE("views of mutable elements convert to views of constant ones, not vice versa") {
  static_assert(std::convertible_to<TensorView<int>, TensorView<const int>>);
  static_assert(!std::convertible_to<TensorView<const int>, TensorView<int>>);
  static_assert(std::convertible_to<Tensor<int>&, TensorView<int>>);
  static_assert(std::convertible_to<Tensor<int>&, TensorView<const int>>);
  static_assert(std::convertible_to<const Tensor<int>&, TensorView<const int>>);
  static_assert(!std::convertible_to<const Tensor<int>&, TensorView<int>>);
  static_assert(!std::convertible_to<TensorView<float>, TensorView<const int>>);
  static_assert(std::same_as<decltype(std::declval<const Tensor<int>&>()[0]), const int&>);
  Tensor<int> tensor = counted(Shape{3});
  const TensorView<const int> constant = tensor.view();
  CHECK(constant.data() == tensor.data());
  CHECK(constant.shape() == Shape{3});
  const TensorView<const int> direct = std::as_const(tensor);
  CHECK(direct[2] == 2);
}

TEST_CASE("indices and rows out of range break the contract") {
  Tensor<int> tensor = counted(Shape{3, 2});
  const TensorView<int> view = tensor;
  const auto ending = testing::stderr_of([&] { static_cast<void>(view.rows(2, 2)); });
  CHECK(ending.aborted);
  CHECK(ending.says("first + count <= shape_[0]"));
  CHECK(testing::stderr_of([&] { static_cast<void>(view.row(3)); }).aborted);
  CHECK(testing::stderr_of([&] { static_cast<void>(view[6]); }).aborted);
  CHECK(testing::stderr_of([&] { static_cast<void>(view(1)); }).aborted);
  CHECK(testing::stderr_of([&] { static_cast<void>(view(3, 0)); }).aborted);
  CHECK(!testing::stderr_of([&] { static_cast<void>(view(2, 1)); }).aborted);
}

TEST_CASE("a failed resize leaves the tensor unchanged") {
  Tensor<int> tensor = counted(Shape{3});
  CHECK_THROWS_AS(tensor.resize(Shape{(std::size_t{1} << 62) + 1}), std::bad_array_new_length);
  CHECK(tensor.shape() == Shape{3});
  CHECK(tensor[2] == 2);
}

TEST_CASE("a tensor is made of values, copied from a view, indexed by axis, and compared") {
  Tensor<float> tensor{{2, 3}, {1, 2, 3, 4, 5, 6}};
  CHECK(tensor(1, 0) == 4);
  tensor(1, 2) = 7;
  CHECK(tensor[5] == 7);
  CHECK(std::as_const(tensor)(0, 1) == 2);
  const Tensor<float> copy{tensor.view()};
  CHECK(copy == tensor);
  tensor[0] = -1;
  CHECK(copy != tensor);
  CHECK(copy != Tensor<float>{{3, 2}, {1, 2, 3, 4, 5, 7}});
  const std::vector<float> numbers{1, 2};
  CHECK(Tensor<float>{{2}, numbers} == Tensor<float>{{2}, {1, 2}});
  CHECK(Tensor<float>{{}, {3}}[0] == 3);
  CHECK(Tensor<float>{{0, 4}, {}}.rows() == 0);
  CHECK_THROWS_AS((Tensor<float>{{2, 2}, {1, 2, 3}}), dist::ShapeMismatch);
}

TEST_CASE("a tensor is printed row by row") {
  CHECK(to_string(Tensor<float>{{2, 2}, {1, 2.5, -3, 4}}) == "[[1, 2.5], [-3, 4]]");
  CHECK(to_string(Tensor<std::int8_t>{{2}, {65, 66}}.view()) == "[65, 66]");
  CHECK(to_string(Tensor<dist::Float16>{{}, {dist::Float16{0.5F}}}) == "0.5");
  CHECK(to_string(Tensor<int>{}) == "[]");
  std::ostringstream out;
  out << Tensor<int>{{1, 2}, {3, 4}} << " of shape " << Shape{1, 2};
  CHECK(out.str() == "[[3, 4]] of shape [1, 2]");
}

namespace {

struct Elsewhere {
  static constexpr bool host_accessible = false;
};

}  // namespace

TEST_CASE("a view of device memory has a shape, rows and an address") {
  using View = dist::TensorView<float, Elsewhere>;
  float elements[6] = {};
  const View view{elements, dist::Shape{3, 2}};
  CHECK(view.data() == elements);
  CHECK(view.shape() == dist::Shape{3, 2});
  CHECK(view.size() == 6);
  CHECK(view.rows() == 3);
  CHECK(view.row(2).data() == elements + 4);
  CHECK(view.rows(1, 2).size() == 4);
  CHECK(view.elements().size() == 6);
  CHECK(std::is_same_v<decltype(view.elements()), dist::DeviceSpan<float, Elsewhere>>);
  CHECK(View{view.elements(), dist::Shape{6}}.rows() == 6);
  CHECK_THROWS_AS((View{view.elements(), dist::Shape{5}}), dist::ShapeMismatch);
  CHECK(std::is_convertible_v<View, dist::TensorView<const float, Elsewhere>>);
  CHECK(!std::is_convertible_v<View, dist::TensorView<float>>);
  CHECK(!std::is_convertible_v<dist::TensorView<float>, View>);
  CHECK(!std::is_convertible_v<dist::Tensor<float>&, View>);
  CHECK(!View::is_host_accessible);
  CHECK(dist::TensorView<float>::is_host_accessible);
}
