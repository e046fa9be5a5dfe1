#include <dist/data/replica_batches.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <data/sequences.hpp>

using dist::ShapeMismatch;
using dist::Tensor;
using dist::TensorView;
using dist::data::detail::AnyRows;
using dist::data::detail::batch_ops;
using dist::data::detail::typed_rows;
using dist_test::iota;
using dist_test::values;

TEST_CASE("type-erased rows of several batches are copied to one batch") {
  const auto& ops = batch_ops<TensorView<const int>>;
  const Tensor<int> numbers = iota<int>({4, 2});
  const TensorView<const int> batch = numbers;
  CHECK(ops.count(&batch) == 4);
  Tensor<int> copies;
  ops.copy(&batch, 3, 1, &copies, 0, 3);
  ops.copy(&batch, 0, 2, &copies, 1, 3);
  CHECK(ops.copies->count(&copies) == 3);
  CHECK(values(copies) == std::vector<int>{6, 7, 0, 1, 2, 3});
  CHECK(values(typed_rows<TensorView<const int>>({.batch = &copies, .are_copies = true, .first = 1, .count = 1})) ==
        std::vector<int>{0, 1});
  CHECK(values(typed_rows<TensorView<const int>>({.batch = &batch, .first = 1, .count = 1})) == std::vector<int>{2, 3});
}

TEST_CASE("rows of another shape are rejected") {
  const auto& ops = batch_ops<Tensor<int>>;
  const Tensor<int> narrow = iota<int>({1, 2});
  const Tensor<int> wide = iota<int>({1, 3});
  Tensor<int> copies;
  ops.copy(&narrow, 0, 1, &copies, 0, 2);
  CHECK_THROWS_AS(ops.copy(&wide, 0, 1, &copies, 1, 2), ShapeMismatch);
}
