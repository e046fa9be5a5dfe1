/// Primitive descriptors, in the spelling of oneDNN 2.x and of 3.x, which dropped operation descriptors. All
/// other headers here read the same for both.
#pragma once

#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/onednn/api.hpp>

namespace dist::nn::onednn {

using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
using Descriptor = dnnl::memory::desc;

/// float elements of extents `dims` in the order that `tag` names.
[[nodiscard]] inline Descriptor tensor(const Dims& dims, Tag tag) { return {dims, dnnl::memory::data_type::f32, tag}; }

/// oneDNN's name of an activation, `algorithm` with `alpha`, and the name of its gradient. Activations without a name are
/// computed by our own loops, which the compiler vectorises for Relu.
template <class Function>
struct NameOf {
  static constexpr bool is_known = false;
};
template <dnnl::algorithm Algorithm, dnnl::algorithm Gradient = Algorithm, int Alpha = 0>
struct KnownName {
  static constexpr bool is_known = true;
  static constexpr auto algorithm = Algorithm;
  static constexpr auto gradient = Gradient;
  static constexpr float alpha = Alpha;
};
template <>
struct NameOf<Tanh> : KnownName<dnnl::algorithm::eltwise_tanh, dnnl::algorithm::eltwise_tanh_use_dst_for_bwd> {};
template <>
struct NameOf<Sigmoid>
    : KnownName<dnnl::algorithm::eltwise_logistic, dnnl::algorithm::eltwise_logistic_use_dst_for_bwd> {};
template <>
struct NameOf<Gelu> : KnownName<dnnl::algorithm::eltwise_gelu_erf> {};
template <>
struct NameOf<Silu> : KnownName<dnnl::algorithm::eltwise_swish, dnnl::algorithm::eltwise_swish, 1> {};

/// Whether a primitive's result takes the place of what there was, or is added to it.
enum class Result { is_new, is_added };

/// Attributes of every primitive here: the scratchpad is ours. No activation is appended, because oneDNN turns a NaN into a
/// number, depending on the primitive and the processor.
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

[[nodiscard]] inline dnnl::convolution_backward_weights::primitive_desc backward_weights(const dnnl::engine& engine,
                                                                                         const Convolution& c) {
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  const auto hint = forward(engine, c, attributes());
#if DNNL_VERSION_MAJOR >= 3
  return {engine, algorithm, c.src, c.weights, c.bias, c.dst, c.strides, c.before, c.after, hint, attributes()};
#else
  return {dnnl::convolution_backward_weights::desc{algorithm, c.src, c.weights, c.bias, c.dst, c.strides, c.before,
                                                   c.after},
          attributes(), engine, hint};
#endif
}

[[nodiscard]] inline dnnl::convolution_backward_data::primitive_desc backward_data(const dnnl::engine& engine,
                                                                                   const Convolution& c) {
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  const auto hint = forward(engine, c, attributes());
#if DNNL_VERSION_MAJOR >= 3
  return {engine, algorithm, c.src, c.weights, c.dst, c.strides, c.before, c.after, hint, attributes()};
#else
  return {dnnl::convolution_backward_data::desc{algorithm, c.src, c.weights, c.dst, c.strides, c.before, c.after},
          attributes(), engine, hint};
#endif
}

/// exp(x) over its sum along the last axis of the matrix `values`.
[[nodiscard]] inline dnnl::softmax_forward::primitive_desc softmax(const dnnl::engine& engine,
                                                                   const Descriptor& values) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kind, dnnl::algorithm::softmax_accurate, values, values, 1, attributes()};
#else
  return {dnnl::softmax_forward::desc{kind, values, 1}, attributes(), engine};
#endif
}

/// The function on all elements of `values`, and its gradient.
template <class Function>
[[nodiscard]] dnnl::eltwise_forward::primitive_desc forward(const dnnl::engine& engine, const Descriptor& values,
                                                            dnnl::algorithm algorithm) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
  constexpr float alpha = NameOf<Function>::alpha;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, kind, algorithm, values, values, alpha, 0.0F, attributes()};
#else
  return {dnnl::eltwise_forward::desc{kind, algorithm, values, alpha, 0.0F}, attributes(), engine};
#endif
}
template <class Function>
[[nodiscard]] dnnl::eltwise_backward::primitive_desc backward(const dnnl::engine& engine, const Descriptor& values) {
  constexpr auto algorithm = NameOf<Function>::gradient;
  constexpr float alpha = NameOf<Function>::alpha;
  const auto hint = forward<Function>(engine, values, algorithm);
#if DNNL_VERSION_MAJOR >= 3
  return {engine, algorithm, values, values, values, alpha, 0.0F, hint, attributes()};
#else
  return {dnnl::eltwise_backward::desc{algorithm, values, values, alpha, 0.0F}, attributes(), engine, hint};
#endif
}

}  // namespace dist::nn::onednn
