#include <dist/nn/onednn/descriptors.hpp>

#include <doctest/doctest.h>

namespace onednn = dist::nn::onednn;
using onednn::Tag;
using onednn::tensor;

TEST_CASE("attributes request a user scratchpad, and add to the result if requested") {
  CHECK(onednn::attributes().get_scratchpad_mode() == dnnl::scratchpad_mode::user);
  CHECK(onednn::attributes().get_post_ops().len() == 0);
  const auto operations = onednn::attributes(onednn::Result::is_added).get_post_ops();
  REQUIRE(operations.len() == 1);
  CHECK(operations.kind(0) == dnnl::primitive::kind::sum);
}

TEST_CASE("oneDNN rejects tensors with mismatched shapes") {
  const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  const auto a = tensor({2, 3}, Tag::ab);
  const auto b = tensor({3, 4}, Tag::ab);
  const auto c = tensor({2, 4}, Tag::ab);
  CHECK_NOTHROW(onednn::matmul(engine, a, b, {}, c, onednn::attributes()));
  CHECK_THROWS_AS(onednn::matmul(engine, a, c, {}, b, onednn::attributes()), dnnl::error);
}

TEST_CASE("convolutions choose the kernel layout and keep the image layout") {
  const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  const onednn::Convolution c{.src = tensor({2, 3, 6, 5}, Tag::nhwc),
                              .weights = tensor({4, 3, 3, 3}, Tag::any),
                              .bias = tensor({4}, Tag::x),
                              .dst = tensor({2, 4, 4, 3}, Tag::nhwc),
                              .strides = {1, 1},
                              .before = {0, 0},
                              .after = {0, 0}};
  CHECK(onednn::forward(engine, c, onednn::attributes()).dst_desc() == c.dst);
  CHECK(onednn::backward_weights(engine, c, c).src_desc() == c.src);
  CHECK(onednn::backward_data(engine, c, c).diff_src_desc() == c.src);
}
