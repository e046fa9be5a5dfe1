#pragma once

#include <concepts>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dist/nn/activation.hpp>
#include <dist/nn/onednn/api.hpp>
#include <dist/nn/onednn/descriptors.hpp>

/// Layers in plain oneDNN, where each primitive has parameters and gradients in its preferred layout, without
/// conversions. The first `own_layouts` gradients of a layer have such layouts; the others are in Buffers.
namespace bench::bare {

namespace onednn = dist::nn::onednn;
using Dim = dnnl::memory::dim;
using onednn::Descriptor;
using onednn::Tag;

/// A batch, its gradients, and the parameters and their gradients in the library's layout.
struct Buffers {
  Dim rows;
  float* x;
  float* y;
  float* dy;
  float* dx;
  float* parameters[8];
  float* gradients[8];
};

class Primitives {
 public:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  [[nodiscard]] const dnnl::engine& engine() const { return engine_; }
  /// Adds a primitive that was created from `descriptor`.
  void add(const auto& descriptor, const dnnl::primitive& primitive, Arguments arguments) {
    arguments.emplace(DNNL_ARG_SCRATCHPAD, own(descriptor.scratchpad_desc()));
    calls_.emplace_back(primitive, std::move(arguments));
  }
  [[nodiscard]] dnnl::memory at(float* data, const Descriptor& layout) const { return {layout, engine_, data}; }
  [[nodiscard]] dnnl::memory own(const Descriptor& layout) const { return {layout, engine_}; }
  /// Returns a copy of `data` in another layout.
  [[nodiscard]] dnnl::memory copy(float* data, const Descriptor& from, const Descriptor& to) {
    dnnl::memory source = at(data, from);
    dnnl::memory target = own(to);
    dnnl::reorder{source, target}.execute(stream_, source, target);
    stream_.wait();
    return target;
  }

  void run() {
    for (const auto& [primitive, arguments] : calls_) primitive.execute(stream_, arguments);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<std::pair<dnnl::primitive, Arguments>> calls_;
};

/// Attributes with the activation as post-op.
template <class Activation>
[[nodiscard]] dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes = onednn::attributes();
  if constexpr (std::same_as<Activation, dist::nn::Relu>) {
    dnnl::post_ops operations;
#if DNNL_VERSION_MAJOR >= 3
    operations.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
#else
    operations.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
#endif
    attributes.set_post_ops(operations);
  } else {
    static_assert(std::same_as<Activation, dist::nn::Linear>);
  }
  return attributes;
}

/// Computes the gradient of ReLU in place. The backend does not use oneDNN's ReLU, which turns NaN into 0.
inline void add_relu_gradient(Primitives& all, const Descriptor& values, const Buffers& b) {
  const auto gradient = onednn::backward(
      all.engine(), values, {dnnl::algorithm::eltwise_relu, dnnl::algorithm::eltwise_relu_use_dst_for_bwd});
  const dnnl::memory dy = all.at(b.dy, values);
  all.add(gradient, dnnl::eltwise_backward{gradient},
          {{DNNL_ARG_DST, all.at(b.y, values)}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dy}});
}

struct Convolution {
  static constexpr std::size_t own_layouts = 1;

  template <class Placed, bool InputGradient>
  static void add(Primitives& all, const Buffers& b) {
    using G = typename Placed::Geometry;
    const onednn::Dims kernel{G::filters, G::channels, G::window, G::window};
    const onednn::Convolution tensors{
        .src = onednn::tensor({b.rows, G::channels, G::height, G::width}, Tag::nhwc),
        .weights = onednn::tensor(kernel, Tag::any),
        .bias = onednn::tensor({G::filters}, Tag::x),
        .dst = onednn::tensor({b.rows, G::filters, G::output_height, G::output_width}, Tag::nhwc),
        .strides = {G::stride, G::stride},
        .before = {G::pad_top, G::pad_left},
        .after = {G::pad_bottom, G::pad_right}};
    const Descriptor plain = onednn::tensor(kernel, Tag::hwio);
    const dnnl::memory x = all.at(b.x, tensors.src);
    const dnnl::memory y = all.at(b.y, tensors.dst);
    const dnnl::memory dy = all.at(b.dy, tensors.dst);

    const auto forward = onednn::forward(all.engine(), tensors, attributes<typename G::Activation>());
    all.add(forward, dnnl::convolution_forward{forward},
            {{DNNL_ARG_SRC, x},
             {DNNL_ARG_WEIGHTS, all.copy(b.parameters[0], plain, forward.weights_desc())},
             {DNNL_ARG_BIAS, all.at(b.parameters[1], tensors.bias)},
             {DNNL_ARG_DST, y}});
    if constexpr (std::same_as<typename G::Activation, dist::nn::Relu>) add_relu_gradient(all, tensors.dst, b);
    const auto of_kernel = onednn::backward_weights(all.engine(), tensors, tensors);
    all.add(of_kernel, dnnl::convolution_backward_weights{of_kernel},
            {{DNNL_ARG_SRC, x},
             {DNNL_ARG_DIFF_DST, dy},
             {DNNL_ARG_DIFF_WEIGHTS, all.own(of_kernel.diff_weights_desc())},
             {DNNL_ARG_DIFF_BIAS, all.at(b.gradients[1], tensors.bias)}});
    if constexpr (InputGradient) {
      const auto of_input = onednn::backward_data(all.engine(), tensors, tensors);
      all.add(of_input, dnnl::convolution_backward_data{of_input},
              {{DNNL_ARG_DIFF_DST, dy},
               {DNNL_ARG_WEIGHTS, all.copy(b.parameters[0], plain, of_input.weights_desc())},
               {DNNL_ARG_DIFF_SRC, all.at(b.dx, tensors.src)}});
    }
  }
};

/// For layers without a counterpart.
struct Nothing {
  template <class Placed, bool InputGradient>
  static void add(Primitives&, const Buffers&) {}
};

/// A dense layer by oneDNN's inner product.
struct Dense {
  static constexpr std::size_t own_layouts = 1;

  template <class Placed, bool InputGradient>
  static void add(Primitives& all, const Buffers& b) {
    using G = typename Placed::Geometry;
    const Descriptor src = onednn::tensor({b.rows, G::inputs}, Tag::ab);
    const Descriptor weights = onednn::tensor({G::units, G::inputs}, Tag::any);
    const Descriptor plain = onednn::tensor({G::units, G::inputs}, Tag::ba);
    const Descriptor bias = onednn::tensor({G::units}, Tag::x);
    const Descriptor dst = onednn::tensor({b.rows, G::units}, Tag::ab);
    const dnnl::memory x = all.at(b.x, src);
    const dnnl::memory dy = all.at(b.dy, dst);
    const auto with_activation = attributes<typename G::Activation>();
    const auto none = onednn::attributes();
    constexpr auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::inner_product_forward::primitive_desc forward{all.engine(), kind,           src, weights, bias,
                                                              dst,          with_activation};
    const dnnl::inner_product_backward_weights::primitive_desc of_kernel{all.engine(), src,     weights, bias,
                                                                         dst,          forward, none};
    const dnnl::inner_product_backward_data::primitive_desc of_input{all.engine(), src, weights, dst, forward, none};
#else
    const dnnl::inner_product_forward::primitive_desc forward{
        {kind, src, weights, bias, dst}, with_activation, all.engine()};
    const dnnl::inner_product_backward_weights::primitive_desc of_kernel{
        {src, weights, bias, dst}, none, all.engine(), forward};
    const dnnl::inner_product_backward_data::primitive_desc of_input{{src, weights, dst}, none, all.engine(), forward};
#endif
    all.add(forward, dnnl::inner_product_forward{forward},
            {{DNNL_ARG_SRC, x},
             {DNNL_ARG_WEIGHTS, all.copy(b.parameters[0], plain, forward.weights_desc())},
             {DNNL_ARG_BIAS, all.at(b.parameters[1], bias)},
             {DNNL_ARG_DST, all.at(b.y, dst)}});
    if constexpr (std::same_as<typename G::Activation, dist::nn::Relu>) add_relu_gradient(all, dst, b);
    all.add(of_kernel, dnnl::inner_product_backward_weights{of_kernel},
            {{DNNL_ARG_SRC, x},
             {DNNL_ARG_DIFF_DST, dy},
             {DNNL_ARG_DIFF_WEIGHTS, all.own(of_kernel.diff_weights_desc())},
             {DNNL_ARG_DIFF_BIAS, all.at(b.gradients[1], bias)}});
    if constexpr (InputGradient)
      all.add(of_input, dnnl::inner_product_backward_data{of_input},
              {{DNNL_ARG_DIFF_DST, dy},
               {DNNL_ARG_WEIGHTS, all.copy(b.parameters[0], plain, of_input.weights_desc())},
               {DNNL_ARG_DIFF_SRC, all.at(b.dx, src)}});
  }
};

struct Pooling {
  dnnl::algorithm algorithm;
  Descriptor src;
  Descriptor dst;
  onednn::Dims strides;
  onednn::Dims window;
  onednn::Dims before;
  onednn::Dims after;
};

[[nodiscard]] inline dnnl::pooling_forward::primitive_desc pooling_forward(const dnnl::engine& engine,
                                                                           const Pooling& p) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  const onednn::Dims none{0, 0};
  return {engine, kind, p.algorithm, p.src, p.dst, p.strides, p.window, none, p.before, p.after, onednn::attributes()};
#else
  return {dnnl::pooling_forward::desc{kind, p.algorithm, p.src, p.dst, p.strides, p.window, p.before, p.after},
          onednn::attributes(), engine};
#endif
}

[[nodiscard]] inline dnnl::pooling_backward::primitive_desc pooling_backward(const dnnl::engine& engine,
                                                                             const Pooling& p) {
  const auto hint = pooling_forward(engine, p);
#if DNNL_VERSION_MAJOR >= 3
  const onednn::Dims none{0, 0};
  return {engine, p.algorithm, p.src, p.dst, p.strides, p.window, none, p.before, p.after, hint, onednn::attributes()};
#else
  return {dnnl::pooling_backward::desc{p.algorithm, p.src, p.dst, p.strides, p.window, p.before, p.after},
          onednn::attributes(), engine, hint};
#endif
}

struct MaxPooling {
  static constexpr std::size_t own_layouts = 0;

  template <class Placed, bool InputGradient>
  static void add(Primitives& all, const Buffers& b) {
    using G = typename Placed::Geometry;
    const Pooling tensors{.algorithm = dnnl::algorithm::pooling_max,
                          .src = onednn::tensor({b.rows, G::channels, G::height, G::width}, Tag::nhwc),
                          .dst = onednn::tensor({b.rows, G::channels, G::output_height, G::output_width}, Tag::nhwc),
                          .strides = {G::stride, G::stride},
                          .window = {G::window, G::window},
                          .before = {G::pad_top, G::pad_left},
                          .after = {G::pad_bottom, G::pad_right}};
    const auto forward = pooling_forward(all.engine(), tensors);
    const dnnl::memory places = all.own(forward.workspace_desc());
    all.add(forward, dnnl::pooling_forward{forward},
            {{DNNL_ARG_SRC, all.at(b.x, tensors.src)},
             {DNNL_ARG_DST, all.at(b.y, tensors.dst)},
             {DNNL_ARG_WORKSPACE, places}});
    const auto backward = pooling_backward(all.engine(), tensors);
    if constexpr (InputGradient)
      all.add(backward, dnnl::pooling_backward{backward},
              {{DNNL_ARG_DIFF_DST, all.at(b.dy, tensors.dst)},
               {DNNL_ARG_DIFF_SRC, all.at(b.dx, tensors.src)},
               {DNNL_ARG_WORKSPACE, places}});
  }
};

/// Adds a batch or layer normalization, which take the same arguments.
template <class Forward, class Backward>
void add_normalization(Primitives& all, const Buffers& b, const typename Forward::primitive_desc& forward,
                       const typename Backward::primitive_desc& backward, const Descriptor& values,
                       const Descriptor& of_channels) {
  const dnnl::memory x = all.at(b.x, values);
  const dnnl::memory mean = all.own(forward.mean_desc());
  const dnnl::memory variance = all.own(forward.variance_desc());
  const dnnl::memory scale = all.at(b.parameters[0], of_channels);
  const dnnl::memory shift = all.at(b.parameters[1], of_channels);
  all.add(forward, Forward{forward},
          {{DNNL_ARG_SRC, x},
           {DNNL_ARG_MEAN, mean},
           {DNNL_ARG_VARIANCE, variance},
           {DNNL_ARG_SCALE, scale},
           {DNNL_ARG_SHIFT, shift},
           {DNNL_ARG_DST, all.at(b.y, values)}});
  all.add(backward, Backward{backward},
          {{DNNL_ARG_SRC, x},
           {DNNL_ARG_MEAN, mean},
           {DNNL_ARG_VARIANCE, variance},
           {DNNL_ARG_SCALE, scale},
           {DNNL_ARG_SHIFT, shift},
           {DNNL_ARG_DIFF_DST, all.at(b.dy, values)},
           {DNNL_ARG_DIFF_SRC, all.at(b.dx, values)},
           {DNNL_ARG_DIFF_SCALE, all.at(b.gradients[0], of_channels)},
           {DNNL_ARG_DIFF_SHIFT, all.at(b.gradients[1], of_channels)}});
}

struct BatchNormalization {
  static constexpr std::size_t own_layouts = 0;

  template <class Placed, bool InputGradient>
  static void add(Primitives& all, const Buffers& b) {
    static_assert(InputGradient, "oneDNN has no gradients of the parameters alone");
    constexpr Dim channels = Placed::channels;
    constexpr Dim pixels = Placed::Output::elements / channels;
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    constexpr auto kind = dnnl::prop_kind::forward_training;
    constexpr auto back = dnnl::prop_kind::backward;
    constexpr float epsilon = 1e-3F;
    const Descriptor values = onednn::tensor({b.rows, channels, 1, pixels}, Tag::nhwc);
    const auto none = onednn::attributes();
    using Forward = dnnl::batch_normalization_forward;
    using Backward = dnnl::batch_normalization_backward;
#if DNNL_VERSION_MAJOR >= 3
    const Forward::primitive_desc forward{all.engine(), kind, values, values, epsilon, flags, none};
    const Backward::primitive_desc backward{all.engine(), back, values, values, values, epsilon, flags, forward, none};
#else
    const Forward::primitive_desc forward{{kind, values, epsilon, flags}, none, all.engine()};
    const Backward::primitive_desc backward{{back, values, values, epsilon, flags}, none, all.engine(), forward};
#endif
    add_normalization<Forward, Backward>(all, b, forward, backward, values, onednn::tensor({channels}, Tag::x));
  }
};

/// Layer normalization of rows [pixels, channels].
struct LayerNormalization {
  static constexpr std::size_t own_layouts = 0;

  template <class Placed, bool InputGradient>
  static void add(Primitives& all, const Buffers& b) {
    static_assert(InputGradient, "oneDNN has no gradients of the parameters alone");
    constexpr Dim channels = Placed::Geometry::channels;
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    constexpr auto kind = dnnl::prop_kind::forward_training;
    constexpr auto back = dnnl::prop_kind::backward;
    constexpr float epsilon = 1e-3F;
    constexpr Dim pixels = Placed::Output::elements / channels;
    const Dim rows = b.rows * pixels;
    const Descriptor values = onednn::tensor({rows, channels}, Tag::ab);
    const Descriptor statistics = onednn::tensor({rows}, Tag::a);
    const auto none = onednn::attributes();
    using Forward = dnnl::layer_normalization_forward;
    using Backward = dnnl::layer_normalization_backward;
#if DNNL_VERSION_MAJOR >= 3
    const Forward::primitive_desc forward{all.engine(), kind, values, values, statistics, epsilon, flags, none};
    const Backward::primitive_desc backward{all.engine(), back,    values, values,  values,
                                            statistics,   epsilon, flags,  forward, none};
#else
    const Forward::primitive_desc forward{{kind, values, statistics, epsilon, flags}, none, all.engine()};
    const Backward::primitive_desc backward{
        {back, values, values, statistics, epsilon, flags}, none, all.engine(), forward};
#endif
    add_normalization<Forward, Backward>(all, b, forward, backward, values, onednn::tensor({channels}, Tag::x));
  }
};

}  // namespace bench::bare
