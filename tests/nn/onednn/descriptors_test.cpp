#include <dist/nn/onednn/descriptors.hpp>

#include <doctest/doctest.h>

#include "nn/own_activations.hpp"

namespace onednn = dist::nn::onednn;
using onednn::Tag;
using onednn::tensor;

TEST_CASE("descriptors ask for our scratchpad and append the activation") {
  CHECK(onednn::attributes().get_scratchpad_mode() == dnnl::scratchpad_mode::user);
  CHECK(onednn::attributes<dist::nn::Linear>().get_post_ops().len() == 0);
  const auto operations = onednn::attributes<dist::nn::Relu>().get_post_ops();
  REQUIRE(operations.len() == 1);
  CHECK(operations.kind(0) == dnnl::primitive::kind::eltwise);
  CHECK(onednn::attributes<dist::nn::Gelu>().get_post_ops().len() == 1);
  // What oneDNN does not know is left to loops after the primitive.
  CHECK(onednn::attributes<dist_test::Softsign>().get_post_ops().len() == 0);
  CHECK(onednn::is_appended<dist::nn::Linear>);
  CHECK(onednn::is_appended<dist::nn::Gelu>);
  CHECK_FALSE(onednn::is_appended<dist_test::Softsign>);
}

TEST_CASE("oneDNN refuses tensors that do not fit each other") {
  const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  const auto a = tensor({2, 3}, Tag::ab);
  const auto b = tensor({3, 4}, Tag::ab);
  const auto c = tensor({2, 4}, Tag::ab);
  CHECK_NOTHROW(onednn::matmul(engine, a, b, {}, c, onednn::attributes()));
  CHECK_THROWS_AS(onednn::matmul(engine, a, c, {}, b, onednn::attributes()), dnnl::error);
}

TEST_CASE("convolutions choose the layout of their kernels and keep that of the images") {
  const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  const onednn::Convolution c{.src = tensor({2, 3, 6, 5}, Tag::nhwc),
                              .weights = tensor({4, 3, 3, 3}, Tag::any),
                              .bias = tensor({4}, Tag::x),
                              .dst = tensor({2, 4, 4, 3}, Tag::nhwc),
                              .strides = {1, 1},
                              .before = {0, 0},
                              .after = {0, 0}};
  CHECK(onednn::forward(engine, c, onednn::attributes()).dst_desc() == c.dst);
  CHECK(onednn::backward_weights(engine, c).src_desc() == c.src);
  CHECK(onednn::backward_data(engine, c).diff_src_desc() == c.src);
}

TEST_CASE("poolings keep where the maxima were, and nothing else") {
  const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  onednn::Pooling p{.algorithm = dnnl::algorithm::pooling_max,
                    .src = tensor({2, 3, 5, 4}, Tag::nhwc),
                    .dst = tensor({2, 3, 2, 2}, Tag::nhwc),
                    .strides = {2, 2},
                    .window = {2, 2},
                    .before = {0, 0},
                    .after = {0, 0}};
  CHECK(onednn::forward(engine, p).workspace_desc().get_size() > 0);
  CHECK(onednn::backward(engine, p).diff_src_desc() == p.src);
  p.algorithm = dnnl::algorithm::pooling_avg_exclude_padding;
  CHECK(onednn::forward(engine, p).workspace_desc().get_size() == 0);
}
