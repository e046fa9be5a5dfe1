#include <dist/nn/values.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

struct Outputs {
  dist::TensorView<const float> values;
  dist::TensorView<float> gradient;
};
struct NoGradient {
  dist::TensorView<const float> values;
};

static_assert(dist::nn::DifferentiableOutputs<Outputs>);
static_assert(!dist::nn::DifferentiableOutputs<NoGradient>);
static_assert(!dist::nn::DifferentiableOutputs<dist::Tensor<float>>);
static_assert(dist::nn::Values<dist::Tensor<float>> && dist::nn::Values<dist::TensorView<std::int32_t>>);
static_assert(!dist::nn::Values<float>);

}  // namespace

TEST_CASE("values_of returns rows of tensors, views and outputs") {
  dist::Tensor<float> tensor{dist::Shape{2, 3}};
  for (std::size_t i = 0; i < 6; ++i) tensor[i] = static_cast<float>(i);
  const Outputs outputs{tensor.view(), tensor.view()};
  CHECK(dist::nn::values_of(tensor).data() == tensor.data());
  CHECK(dist::nn::values_of(tensor.view()).rows() == 2);
  CHECK(dist::nn::values_of(outputs).data() == tensor.data());
  const auto row = dist::nn::row_at(dist::nn::values_of(outputs).data(), 3, 1);
  CHECK(row.size() == 3);
  CHECK(row[0] == 3.0f);
}

TEST_CASE("class_of a negative label is above all classes") {
  CHECK(dist::nn::class_of(std::uint8_t{200}) == 200);
  CHECK(dist::nn::class_of(std::int64_t{3}) == 3);
  for (const std::size_t least :
       {dist::nn::class_of(std::int8_t{-1}), dist::nn::class_of(std::numeric_limits<std::int64_t>::min())})
    CHECK(least > std::numeric_limits<std::uint32_t>::max());
}

TEST_CASE("an error about targets has both shapes") {
  dist::Tensor<float> outputs{dist::Shape{4, 10}};
  dist::Tensor<std::int32_t> labels{dist::Shape{3}};
  try {
    dist::nn::require_targets("accuracy", dist::nn::values_of(outputs), dist::nn::values_of(labels), 1);
    FAIL("3 labels for 4 rows were taken");
  } catch (const dist::ShapeMismatch& error) {
    CHECK(std::string(error.what()) ==
          "accuracy got targets that do not fit the outputs (outputs [4, 10], targets [3]). "
          "Give one row of 1 element for each example.");
  }
  dist::Tensor<std::int32_t> column{dist::Shape{4, 1}};
  CHECK_NOTHROW(dist::nn::require_targets("accuracy", dist::nn::values_of(outputs), dist::nn::values_of(column), 1));
}

TEST_CASE("empty targets fit empty outputs, so that another replica's error shows its shapes (spec I24)") {
  const dist::Tensor<float> none{dist::Shape{0, 3}};
  const dist::Tensor<float> some{dist::Shape{1, 3}};
  const dist::Tensor<int> unknown;
  CHECK_NOTHROW(dist::nn::require_targets("loss", none.view(), unknown.view(), 3));
  CHECK_NOTHROW(dist::nn::require_targets("loss", none.view(), unknown.view(), 1));
  CHECK_THROWS_AS(dist::nn::require_targets("loss", some.view(), unknown.view(), 1), dist::ShapeMismatch);
  const dist::Tensor<int> other{dist::Shape{0, 2}};
  CHECK_NOTHROW(dist::nn::require_targets("loss", none.view(), other.view(), 3));
}

TEST_CASE("index_of_largest returns the first of equal ones") {
  const std::vector<float> scores{1, 5, 5, 2};
  CHECK(dist::nn::index_of_largest(std::span<const float>{scores}) == 1);
  CHECK(dist::nn::index_of_largest(std::span<const float>{scores}.last(1)) == 0);
  CHECK(dist::nn::index_of_largest(std::span<const float>{}) == 0);
}
