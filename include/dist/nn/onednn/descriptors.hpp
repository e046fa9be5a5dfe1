/// Primitive descriptors for oneDNN 2.x and for 3.x, which has no operation descriptors. The only version-dependent
/// header.
#pragma once

#include <dist/nn/onednn/api.hpp>

namespace dist::nn::onednn {

using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
using Descriptor = dnnl::memory::desc;

using Number = dnnl::memory::data_type;

/// A tensor of extents `dims` in the layout `tag`.
[[nodiscard]] inline Descriptor tensor(const Dims& dims, Tag tag, Number number = Number::f32) {
  return {dims, number, tag};
}

/// An activation in oneDNN: `algorithm` with `alpha`, and its gradient, by the output if `of_output`, otherwise by
/// the input.
struct EltwiseName {
  dnnl::algorithm algorithm, gradient;
  float alpha = 0;
  bool of_output = false;
};

/// The effect of a primitive on its destination: overwrite it, or add to it.
enum class Result { is_new, is_added };

/// Attributes of all primitives: the library provides the scratchpad. No activation is fused, because oneDNN may turn
/// NaN into a number, depending on primitive and processor.
[[nodiscard]] inline dnnl::primitive_attr attributes(Result result = Result::is_new) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (result == Result::is_added) {
    dnnl::post_ops operations;
    operations.append_sum(1.0F);
    attributes.set_post_ops(operations);
  }
  return attributes;
}

/// dst = src · weights + bias; a zero `bias` descriptor means none.
[[nodiscard]] inline dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const Descriptor& src,
                                                         const Descriptor& weights, const Descriptor& bias,
                                                         const Descriptor& dst,
                                                         const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, src, weights, bias, dst, attributes};
#else
  return {dnnl::matmul::desc{src, weights, bias, dst}, attributes, engine};
#endif
}

/// The tensors and the window of a convolution.
struct Convolution {
  Descriptor src;
  Descriptor weights;
  Descriptor bias;
  Descriptor dst;
  Dims strides;
  Dims before;
  Dims after;
};

[[nodiscard]] inline dnnl::convolution_forward::primitive_desc forward(const dnnl::engine& engine, const Convolution& c,
                                                                       const dnnl::primitive_attr& attributes) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kind, algorithm, c.src, c.weights, c.bias, c.dst, c.strides, c.before, c.after, attributes};
#else
  return {
      dnnl::convolution_forward::desc{kind, algorithm, c.src, c.weights, c.bias, c.dst, c.strides, c.before, c.after},
      attributes, engine};
#endif
}

/// The gradient of the weights of `of`, a convolution in the type of the factors.
[[nodiscard]] inline dnnl::convolution_backward_weights::primitive_desc backward_weights(const dnnl::engine& engine,
                                                                                         const Convolution& of,
                                                                                         const Convolution& c) {
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  const auto hint = forward(engine, of, attributes());
#if DNNL_VERSION_MAJOR >= 3
  return {engine, algorithm, c.src, c.weights, c.bias, c.dst, c.strides, c.before, c.after, hint, attributes()};
#else
  return {dnnl::convolution_backward_weights::desc{algorithm, c.src, c.weights, c.bias, c.dst, c.strides, c.before,
                                                   c.after},
          attributes(), engine, hint};
#endif
}

/// The gradient of the source of `of`, a convolution in the type of the factors.
[[nodiscard]] inline dnnl::convolution_backward_data::primitive_desc backward_data(const dnnl::engine& engine,
                                                                                   const Convolution& of,
                                                                                   const Convolution& c) {
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  const auto hint = forward(engine, of, attributes());
#if DNNL_VERSION_MAJOR >= 3
  return {engine, algorithm, c.src, c.weights, c.dst, c.strides, c.before, c.after, hint, attributes()};
#else
  return {dnnl::convolution_backward_data::desc{algorithm, c.src, c.weights, c.dst, c.strides, c.before, c.after},
          attributes(), engine, hint};
#endif
}

/// exp(x) / sum(exp(x)) along the last axis.
[[nodiscard]] inline dnnl::softmax_forward::primitive_desc softmax(const dnnl::engine& engine,
                                                                   const Descriptor& values) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kind, dnnl::algorithm::softmax_accurate, values, values, 1, attributes()};
#else
  return {dnnl::softmax_forward::desc{kind, values, 1}, attributes(), engine};
#endif
}

/// Applies an activation.
[[nodiscard]] inline dnnl::eltwise_forward::primitive_desc forward(const dnnl::engine& engine, const Descriptor& values,
                                                                   dnnl::algorithm algorithm, float alpha) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kind, algorithm, values, values, alpha, 0.0F, attributes()};
#else
  return {dnnl::eltwise_forward::desc{kind, algorithm, values, alpha, 0.0F}, attributes(), engine};
#endif
}
/// The gradient of an activation.
[[nodiscard]] inline dnnl::eltwise_backward::primitive_desc backward(const dnnl::engine& engine,
                                                                     const Descriptor& values,
                                                                     const EltwiseName& name) {
  const auto hint = forward(engine, values, name.gradient, name.alpha);
#if DNNL_VERSION_MAJOR >= 3
  return {engine, name.gradient, values, values, values, name.alpha, 0.0F, hint, attributes()};
#else
  return {dnnl::eltwise_backward::desc{name.gradient, values, values, name.alpha, 0.0F}, attributes(), engine, hint};
#endif
}

}  // namespace dist::nn::onednn
