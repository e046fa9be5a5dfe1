#include <dist/nn/onednn/primitive.hpp>

#include <string>
#include <vector>

#include <dist/nn/onednn/descriptors.hpp>

#include <doctest/doctest.h>

namespace onednn = dist::nn::onednn;
using onednn::Tag;
using onednn::tensor;

TEST_CASE("a primitive runs on other memory each time") {
  onednn::State state;
  const auto a = tensor({1, 2}, Tag::ab);
  const auto b = tensor({2, 1}, Tag::ab);
  const auto c = tensor({1, 1}, Tag::ab);
  const auto descriptor = onednn::matmul(state.engine(), a, b, {}, c, onednn::attributes());
  onednn::Primitive product{{"a product", [] { return std::string("1 x 2"); }},
                            state,
                            descriptor,
                            dnnl::matmul{descriptor},
                            {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}}};
  const std::vector<float> left{2, 3};
  const std::vector<float> other{-1, 1};
  const std::vector<float> right{10, 100};
  float result = 0;
  product.execute(state, {left.data(), right.data(), &result});
  CHECK(result == 320);
  product.execute(state, {other.data(), right.data(), &result});
  CHECK(result == 90);
}
