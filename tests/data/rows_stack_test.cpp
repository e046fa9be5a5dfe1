#include <dist/data/rows.hpp>

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <data/sequences.hpp>

using dist::InvalidArgument;
using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::TensorView;
using dist::data::Batched;
using dist::data::Example;
using dist::data::Stack;
using dist::data::Stackable;
using dist_test::iota;
using dist_test::values;

static_assert(std::is_same_v<Batched<int>, Tensor<int>>);
static_assert(std::is_same_v<Batched<TensorView<const float>>, Tensor<float>>);
static_assert(std::is_same_v<Batched<TensorView<float>>, Tensor<float>>);
static_assert(std::is_same_v<Batched<Tensor<double>>, Tensor<double>>);
static_assert(std::is_same_v<Batched<Example<Tensor<float>, int>>, Example<Tensor<float>, Tensor<int>>>);
static_assert(std::is_same_v<Batched<std::tuple<int, std::pair<Tensor<float>, std::array<bool, 2>>>>,
                             std::tuple<Tensor<int>, std::pair<Tensor<float>, std::array<Tensor<bool>, 2>>>>);
static_assert(std::is_same_v<Batched<dist::BFloat16>, Tensor<dist::BFloat16>>);
static_assert(!Stackable<std::vector<int>> && !Stackable<const char*> && !Stackable<Example<int, const char*>> &&
              !Stackable<std::tuple<>> && !Stackable<std::pair<int, const char*>> && !Stackable<std::array<int, 0>>);

TEST_CASE("numbers are stacked into a tensor of rank 1") {
  Tensor<int> batch;
  Stack<int>::allocate(batch, 0, 3);
  for (int i = 0; i < 3; ++i) Stack<int>::place(batch, static_cast<std::size_t>(i), 10 * i);
  CHECK(batch.shape() == Shape{3});
  Stack<int>::trim(batch, 2);
  CHECK(batch.shape() == Shape{2});
  CHECK(values(batch) == std::vector<int>{0, 10});
}

TEST_CASE("arrays gain an outermost axis, and the batch reuses its memory") {
  const Tensor<float> source = iota<float>({2, 2, 3});
  using Row = TensorView<const float>;
  Tensor<float> batch;
  Stack<Row>::allocate(batch, source.view().row(0), 2);
  const float* memory = batch.data();
  Stack<Row>::place(batch, 0, source.view().row(1));
  Stack<Row>::place(batch, 1, source.view().row(0));
  CHECK(batch.shape() == Shape{2, 2, 3});
  CHECK(values(batch) == std::vector<float>{6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5});
  Stack<Row>::trim(batch, 1);
  CHECK(values(batch) == std::vector<float>{6, 7, 8, 9, 10, 11});
  Stack<Row>::allocate(batch, source.view().row(0), 2);
  CHECK(batch.data() == memory);
}

TEST_CASE("features and labels are stacked separately") {
  using Element = Example<Tensor<float>, int>;
  Batched<Element> batch;
  const Element first{iota<float>({2}), 7};
  Stack<Element>::allocate(batch, first, 2);
  Stack<Element>::place(batch, 0, first);
  Stack<Element>::place(batch, 1, Element{iota<float>({2}), 8});
  CHECK(values(batch.x) == std::vector<float>{0, 1, 0, 1});
  CHECK(values(batch.y) == std::vector<int>{7, 8});
  Stack<Element>::trim(batch, 1);
  CHECK(batch.x.shape() == Shape{1, 2});
  CHECK(batch.y.shape() == Shape{1});
}

TEST_CASE("a growing batch keeps its elements, in every structure") {
  using Element = std::tuple<int, Example<Tensor<float>, int>>;
  Batched<Element> batch;
  const Element first{5, {iota<float>({2}), 7}};
  Stack<Element>::allocate(batch, first, 1);
  Stack<Element>::place(batch, 0, first);
  Stack<Element>::grow(batch, 3);
  CHECK(std::get<0>(batch).shape() == Shape{3});
  CHECK(std::get<1>(batch).x.shape() == Shape{3, 2});
  Stack<Element>::place(batch, 2, Element{6, {iota<float>({2}), 8}});
  CHECK(std::get<0>(batch)[0] == 5);
  CHECK(std::get<0>(batch)[2] == 6);
  CHECK(std::get<1>(batch).x.view()(0, 1) == 1);
  CHECK(std::get<1>(batch).x.view()(2, 1) == 1);
  CHECK(std::get<1>(batch).y[0] == 7);
}

TEST_CASE("elements of different shape are rejected with index and shapes") {
  Tensor<float> batch;
  Stack<Tensor<float>>::allocate(batch, iota<float>({2, 3}), 4);
  CHECK_THROWS_WITH_AS(Stack<Tensor<float>>::place(batch, 2, iota<float>({3, 2})),
                       doctest::Contains("element 2 has shape [3, 2], the elements before it [2, 3]"), ShapeMismatch);
}

TEST_CASE("a batch larger than the address space is rejected before allocation") {
  Tensor<float> batch;
  const std::size_t rows = std::numeric_limits<std::size_t>::max() / 6;
  CHECK_THROWS_WITH_AS(Stack<Tensor<float>>::allocate(batch, iota<float>({6}), rows),
                       doctest::Contains("rows of shape [6]"), InvalidArgument);
  CHECK_THROWS_AS(Stack<Tensor<float>>::allocate(batch, Tensor<float>{Shape{1, 1, 1, 1, 1, 1}}, 1), InvalidArgument);
}

TEST_CASE("structures are stacked part by part (spec I30)") {
  using Element = std::tuple<int, std::pair<Tensor<float>, std::array<double, 2>>>;
  Batched<Element> batch;
  const Element first{7, {iota<float>({2}), {0.5, 1.5}}};
  Stack<Element>::allocate(batch, first, 3);
  Stack<Element>::place(batch, 0, first);
  Stack<Element>::place(batch, 1, Element{8, {iota<float>({2}), {2.5, 3.5}}});
  Stack<Element>::trim(batch, 2);
  const auto& [numbers, rest] = batch;
  CHECK(values(numbers) == std::vector<int>{7, 8});
  CHECK(rest.first.shape() == Shape{2, 2});
  CHECK(values(rest.second[1]) == std::vector<double>{1.5, 3.5});
  CHECK_THROWS_AS(Stack<Element>::place(batch, 1, Element{8, {iota<float>({3}), {2.5, 3.5}}}), ShapeMismatch);
}
