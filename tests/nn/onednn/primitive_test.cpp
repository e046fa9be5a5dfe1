#include <dist/nn/onednn/primitive.hpp>

#include <string>
#include <vector>

#include <dist/nn/onednn/descriptors.hpp>

#include <doctest/doctest.h>

namespace onednn = dist::nn::onednn;
using onednn::Tag;
using onednn::tensor;

TEST_CASE("a primitive can run on different memory each time") {
  onednn::Runtime runtime;
  const auto a = tensor({1, 2}, Tag::ab);
  const auto b = tensor({2, 1}, Tag::ab);
  const auto c = tensor({1, 1}, Tag::ab);
  const auto descriptor = onednn::matmul(runtime.engine(), a, b, {}, c, onednn::attributes());
  onednn::Primitive product{{"a product", [] { return std::string("1 x 2"); }},
                            runtime,
                            descriptor,
                            {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}}};
  const std::vector<float> left{2, 3};
  const std::vector<float> other{-1, 1};
  const std::vector<float> right{10, 100};
  float result = 0;
  product.execute(runtime, {left.data(), right.data(), &result});
  CHECK(result == 320);
  product.execute(runtime, {other.data(), right.data(), &result});
  CHECK(result == 90);
}

TEST_CASE("the scratchpad grows and never shrinks") {
  onednn::Runtime runtime;
  CHECK(runtime.scratchpad() == nullptr);
  runtime.reserve_scratchpad(100);
  const void* const first = runtime.scratchpad();
  CHECK(first != nullptr);
  runtime.reserve_scratchpad(50);
  CHECK(runtime.scratchpad() == first);
}

TEST_CASE("the memory for copies is separate from the scratchpad, grows and never shrinks") {
  onednn::Runtime runtime;
  CHECK(runtime.copy() == nullptr);
  runtime.reserve_scratchpad(100);
  runtime.reserve_copy(100);
  const void* const first = runtime.copy();
  CHECK(first != nullptr);
  CHECK(first != runtime.scratchpad());
  runtime.reserve_copy(50);
  CHECK(runtime.copy() == first);
}
