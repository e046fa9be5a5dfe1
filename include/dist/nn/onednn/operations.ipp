#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/vectors.hpp>
#include <dist/nn/onednn/descriptors.hpp>
#include <dist/nn/onednn/operations.hpp>
#include <dist/nn/onednn/primitive.hpp>
#include <dist/nn/plans.hpp>

namespace dist::nn::onednn {

/// Applies DIST_MAX_ISA to oneDNN, which reads its own limit, ONEDNN_MAX_CPU_ISA, at the first use. Throws InvalidArgument
/// if the program has used oneDNN before.
DIST_INLINE void limit_isa() {
  static const dnnl::status status = [] {
    switch (dist::detail::max_vector_bytes()) {
      case 16:
        return dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
      case 32:
        return dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
      case 64:
        return dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core);
      default:
        return dnnl::status::success;
    }
  }();
  if (status != dnnl::status::success)
    throw InvalidArgument("DIST_MAX_ISA cannot limit oneDNN", "this program has used oneDNN before dist",
                          "Set ONEDNN_MAX_CPU_ISA in the environment, too");
}

DIST_INLINE State::State() {
  limit_isa();
  runtime_ = std::make_unique<Runtime>();
}
DIST_INLINE_DEFAULT State::~State() = default;
DIST_INLINE float* State::scratch(std::size_t count) {
  runtime_->reserve_copy(count * sizeof(float));
  return static_cast<float*>(runtime_->copy());
}
DIST_INLINE State::OneThread::OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
DIST_INLINE State::OneThread::~OneThread() { omp_set_num_threads(before_); }

DIST_INLINE bool multiplies_bfloat16() {
  limit_isa();
  constexpr int needed = static_cast<int>(dnnl::cpu_isa::avx512_core_bf16);  // a set of bits
  static const bool has_all = (static_cast<int>(dnnl::get_effective_cpu_isa()) & needed) == needed;
  return has_all;
}
DIST_INLINE bool multiplies_bfloat16_faster() {
#ifdef __x86_64__
  return __builtin_cpu_is("amd") && multiplies_bfloat16();
#else
  return false;
#endif
}

[[nodiscard]] constexpr Number number_of(Factors factors) {
  return factors == Factors::bfloat16 ? Number::bf16 : Number::f32;
}

using Dim = dnnl::memory::dim;
[[nodiscard]] constexpr Dim dim(std::size_t extent) { return static_cast<Dim>(extent); }

/// An operation's compiled primitives for one batch size.
struct Plan {
  Primitive primitive;
  /// The second half of a product, or the copy of a kernel or its gradient to or from the primitive's layout.
  std::optional<Primitive> other = {};

  /// Returns the kernel in the primitive's layout.
  [[nodiscard]] const void* chosen_layout(Runtime& runtime, const void* kernel) {
    if (!other) return kernel;
    void* const copy = runtime.copy();
    other->execute(runtime, {kernel, copy});
    return copy;
  }
};
struct OperationPlans : Plans<Plan> {};
DIST_INLINE void DeletePlans::operator()(OperationPlans* plans) const { delete plans; }

/// Returns the plan for `rows` rows, which it first creates with `make()`.
template <class Make>
[[nodiscard]] Plan& plan_for(Compiled& compiled, std::size_t rows, const Label& label, const Make& make) {
  if (!compiled) compiled.reset(new OperationPlans);
  return compiled->for_rows(rows, [&] { return translated(label, make); });
}

/// The product of `columns` columns of x and as many kernel rows, with arguments x, kernel, y and, if `result` is new
/// and the layer has one, bias.
[[nodiscard]] DIST_INLINE Primitive part_of_product(const Label& label, Runtime& runtime, const DenseSizes& sizes,
                                                    std::size_t rows, std::size_t columns, Result result) {
  const Number factor = number_of(sizes.factors);
  const Descriptor x{{dim(rows), dim(columns)}, factor, Dims{dim(sizes.inputs), 1}};
  const Descriptor kernel = tensor({dim(columns), dim(sizes.units)}, Tag::ab, factor);
  const Descriptor y = tensor({dim(rows), dim(sizes.units)}, Tag::ab);
  const bool has_bias = sizes.has_bias && result == Result::is_new;
  const Descriptor bias = has_bias ? tensor({1, dim(sizes.units)}, Tag::ab) : Descriptor{};
  const auto made = matmul(runtime.engine(), x, kernel, bias, y, attributes(result));
  const Primitive::Argument of_x{DNNL_ARG_SRC, x}, of_kernel{DNNL_ARG_WEIGHTS, kernel}, of_y{DNNL_ARG_DST, y};
  return {label, runtime, made, {of_x, of_kernel, of_y, {DNNL_ARG_BIAS, bias}}};
}

DIST_INLINE void multiply(State& state, Compiled& compiled, const DenseSizes& sizes, std::size_t rows, const void* x,
                          const void* kernel, const void* bias, void* y) {
  Runtime& runtime = state.runtime();
  // Long rows are multiplied in two halves: with gaps between rows, oneDNN 2.6 takes another path, which makes a
  // product of 64 x 21632 by 21632 x 128 8 % faster.
  const bool is_split = sizes.inputs >= 4096 && sizes.factors == Factors::float32;
  const std::size_t half = is_split ? sizes.inputs / 2 : sizes.inputs;
  const Label label{"the matmul of nn::Dense", sizes.describe};
  Plan& plan = plan_for(compiled, rows, label, [&] {
    Plan made{part_of_product(label, runtime, sizes, rows, half, Result::is_new)};
    if (half < sizes.inputs)
      made.other = part_of_product(label, runtime, sizes, rows, sizes.inputs - half, Result::is_added);
    return made;
  });
  plan.primitive.execute(runtime, {x, kernel, y, bias});
  if (!plan.other) return;
  const float* const other_kernel = static_cast<const float*>(kernel) + half * sizes.units;
  plan.other->execute(runtime, {static_cast<const float*>(x) + half, other_kernel, y});
}

DIST_INLINE void compute_kernel_gradient(State& state, Compiled& compiled, const DenseSizes& sizes, std::size_t rows,
                                         const void* x, const void* dy, void* kernel_gradient) {
  Runtime& runtime = state.runtime();
  const Label label{"the matmul for the kernel gradient of nn::Dense", sizes.describe};
  Plan& plan = plan_for(compiled, rows, label, [&] {
    const Number factor = number_of(sizes.factors);
    const Descriptor transposed{{dim(sizes.inputs), dim(rows)}, factor, Dims{1, dim(sizes.inputs)}};
    const Descriptor slopes = tensor({dim(rows), dim(sizes.units)}, Tag::ab, factor);
    const Descriptor gradient = tensor({dim(sizes.inputs), dim(sizes.units)}, Tag::ab);
    const auto made = matmul(runtime.engine(), transposed, slopes, {}, gradient, attributes());
    const Primitive::Argument of_x{DNNL_ARG_SRC, transposed}, of_dy{DNNL_ARG_WEIGHTS, slopes};
    return Plan{{label, runtime, made, {of_x, of_dy, {DNNL_ARG_DST, gradient}}}};
  });
  plan.primitive.execute(runtime, {x, dy, kernel_gradient});
}

DIST_INLINE void compute_input_gradient(State& state, Compiled& compiled, const DenseSizes& sizes, std::size_t rows,
                                        const void* dy, const void* kernel, void* dx) {
  Runtime& runtime = state.runtime();
  const Label label{"the matmul for the input gradient of nn::Dense", sizes.describe};
  Plan& plan = plan_for(compiled, rows, label, [&] {
    const Number factor = number_of(sizes.factors);
    const Descriptor slopes = tensor({dim(rows), dim(sizes.units)}, Tag::ab, factor);
    const Descriptor transposed{{dim(sizes.units), dim(sizes.inputs)}, factor, Dims{1, dim(sizes.units)}};
    const Descriptor gradient = tensor({dim(rows), dim(sizes.inputs)}, Tag::ab);
    const auto made = matmul(runtime.engine(), slopes, transposed, {}, gradient, attributes());
    const Primitive::Argument of_dy{DNNL_ARG_SRC, slopes}, of_kernel{DNNL_ARG_WEIGHTS, transposed};
    return Plan{{label, runtime, made, {of_dy, of_kernel, {DNNL_ARG_DST, gradient}}}};
  });
  plan.primitive.execute(runtime, {dy, kernel, dx});
}

DIST_INLINE void compute_bias_gradient(const DenseSizes& sizes, std::size_t rows, const BFloat16* dy,
                                       float* bias_gradient) {
  std::fill_n(bias_gradient, sizes.units, 0.0F);
  dist::detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
    for (std::size_t row = 0; row < rows; ++row) {
      DIST_INDEPENDENT_LOOP
      for (std::size_t unit = 0; unit < sizes.units; ++unit)
        bias_gradient[unit] += static_cast<float>(dy[row * sizes.units + unit]);
    }
  });
}

[[nodiscard]] DIST_INLINE Dims kernel_dims(const Conv2DSizes& sizes) {
  const Dim height = dim(sizes.window_height), width = dim(sizes.window);
  if (sizes.groups == 1) return {dim(sizes.filters), dim(sizes.channels), height, width};
  return {dim(sizes.groups), dim(sizes.filters / sizes.groups), dim(sizes.channels / sizes.groups), height, width};
}
[[nodiscard]] DIST_INLINE Descriptor plain_kernel(const Conv2DSizes& sizes, Number number) {
  return tensor(kernel_dims(sizes), sizes.groups == 1 ? Tag::hwio : Tag::hwigo, number);
}
/// A tensor of a convolution.
enum class Role { src, weights, dst };
/// A convolution or its gradient: the product of two of the tensors, whose type is the one of the factors. The third
/// one, `result`, is float.
[[nodiscard]] DIST_INLINE Convolution convolution(const Conv2DSizes& sizes, std::size_t rows,
                                                  std::optional<Role> result = {}) {
  const auto number = [&](Role role) { return role == result ? Number::f32 : number_of(sizes.factors); };
  const Dims images{dim(rows), dim(sizes.channels), dim(sizes.height), dim(sizes.width)};
  const Dims outputs{dim(rows), dim(sizes.filters), dim(sizes.output_height), dim(sizes.output_width)};
  return {.src = tensor(images, Tag::nhwc, number(Role::src)),
          .weights = tensor(kernel_dims(sizes), Tag::any, number(Role::weights)),
          .bias = sizes.has_bias ? tensor({dim(sizes.filters)}, Tag::x) : Descriptor{},
          .dst = tensor(outputs, Tag::nhwc, number(Role::dst)),
          .strides = {dim(sizes.stride), dim(sizes.stride)},
          .before = {dim(sizes.pad_top), dim(sizes.pad_left)},
          .after = {dim(sizes.pad_bottom), dim(sizes.pad_right)}};
}

/// A plan that also copies the kernel if the layouts differ.
[[nodiscard]] DIST_INLINE Plan plan_with_copy(const Label& label, Runtime& runtime, const Descriptor& from,
                                              const Descriptor& to, Primitive primitive) {
  Plan plan{std::move(primitive)};
  if (from == to) return plan;
  const dnnl::reorder::primitive_desc made{runtime.engine(), from, runtime.engine(), to, attributes()};
  plan.other = Primitive{label, runtime, made, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
  runtime.reserve_copy(std::max(from.get_size(), to.get_size()));
  return plan;
}

DIST_INLINE void convolve(State& state, Compiled& compiled, const Conv2DSizes& sizes, std::size_t rows, const void* x,
                          const void* kernel, const void* bias, void* y) {
  Runtime& runtime = state.runtime();
  const Label label{"the convolution of nn::Conv2D", sizes.describe};
  Plan& plan = plan_for(compiled, rows, label, [&] {
    const Convolution c = convolution(sizes, rows, Role::dst);
    const auto made = forward(runtime.engine(), c, attributes());
    const Descriptor weights = made.weights_desc();
    const Primitive::Argument of_x{DNNL_ARG_SRC, c.src}, of_bias{DNNL_ARG_BIAS, c.bias}, of_y{DNNL_ARG_DST, c.dst};
    return plan_with_copy(label, runtime, plain_kernel(sizes, number_of(sizes.factors)), weights,
                          {label, runtime, made, {of_x, {DNNL_ARG_WEIGHTS, weights}, of_y, of_bias}});
  });
  plan.primitive.execute(runtime, {x, plan.chosen_layout(runtime, kernel), y, bias});
}

DIST_INLINE void compute_kernel_gradient(State& state, Compiled& compiled, const Conv2DSizes& sizes, std::size_t rows,
                                         const void* x, const void* dy, void* kernel_gradient, void* bias_gradient) {
  Runtime& runtime = state.runtime();
  const Label label{"the convolution for the kernel gradient of nn::Conv2D", sizes.describe};
  Plan& plan = plan_for(compiled, rows, label, [&] {
    const Convolution c = convolution(sizes, rows, Role::weights);
    const auto made = backward_weights(runtime.engine(), convolution(sizes, rows), c);
    const Descriptor weights = made.diff_weights_desc();
    const Primitive::Argument of_x{DNNL_ARG_SRC, c.src}, of_dy{DNNL_ARG_DIFF_DST, c.dst};
    const Primitive::Argument of_kernel{DNNL_ARG_DIFF_WEIGHTS, weights}, of_bias{DNNL_ARG_DIFF_BIAS, c.bias};
    return plan_with_copy(label, runtime, weights, plain_kernel(sizes, Number::f32),
                          {label, runtime, made, {of_x, of_dy, of_kernel, of_bias}});
  });
  void* const result = plan.other ? runtime.copy() : kernel_gradient;
  plan.primitive.execute(runtime, {x, dy, result, bias_gradient});
  if (plan.other) plan.other->execute(runtime, {result, kernel_gradient});
}

DIST_INLINE void compute_input_gradient(State& state, Compiled& compiled, const Conv2DSizes& sizes, std::size_t rows,
                                        const void* dy, const void* kernel, void* dx) {
  Runtime& runtime = state.runtime();
  const Label label{"the convolution for the input gradient of nn::Conv2D", sizes.describe};
  Plan& plan = plan_for(compiled, rows, label, [&] {
    const Convolution c = convolution(sizes, rows, Role::src);
    const auto made = backward_data(runtime.engine(), convolution(sizes, rows), c);
    const Descriptor weights = made.weights_desc();
    const Primitive::Argument of_dy{DNNL_ARG_DIFF_DST, c.dst}, of_dx{DNNL_ARG_DIFF_SRC, c.src};
    return plan_with_copy(label, runtime, plain_kernel(sizes, number_of(sizes.factors)), weights,
                          {label, runtime, made, {of_dy, {DNNL_ARG_WEIGHTS, weights}, of_dx}});
  });
  plan.primitive.execute(runtime, {dy, plan.chosen_layout(runtime, kernel), dx});
}

DIST_INLINE void add_product(const Label& label, Factor a, Factor b, float* sum, std::size_t stride, Extents extents) {
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed, b.transposed, dim(extents.rows), dim(extents.columns), dim(extents.inner), 1.0f, a.data,
                 dim(a.stride), b.data, dim(b.stride), 1.0f, sum, dim(stride));
  if (status != dnnl_success) throw OneDnnError(label.primitive, label.geometry(), status, "could not compute it");
}

[[nodiscard]] DIST_INLINE EltwiseName name_of(Eltwise function) {
  using dnnl::algorithm;
  switch (function) {
    case Eltwise::elu:
      return {algorithm::eltwise_elu, algorithm::eltwise_elu_use_dst_for_bwd, 1, true};
    case Eltwise::tanh:
      return {algorithm::eltwise_tanh, algorithm::eltwise_tanh_use_dst_for_bwd, 0, true};
    case Eltwise::sigmoid:
      return {algorithm::eltwise_logistic, algorithm::eltwise_logistic_use_dst_for_bwd, 0, true};
    case Eltwise::gelu:
      return {algorithm::eltwise_gelu_erf, algorithm::eltwise_gelu_erf};
    case Eltwise::gelu_tanh:
      return {algorithm::eltwise_gelu_tanh, algorithm::eltwise_gelu_tanh};
    case Eltwise::silu:
      return {algorithm::eltwise_swish, algorithm::eltwise_swish, 1};
    case Eltwise::none:
      break;
  }
  return {algorithm::undef, algorithm::undef};
}

[[nodiscard]] DIST_INLINE std::string describe_elements() { return "a batch of numbers"; }

DIST_INLINE void activate(State& state, Compiled& compiled, Eltwise function, std::size_t count, const void* x,
                          void* y) {
  Runtime& runtime = state.runtime();
  const EltwiseName name = name_of(function);
  const Label label{"an activation", &describe_elements};
  Plan& plan = plan_for(compiled, count, label, [&] {
    const Descriptor values = tensor({dim(count)}, Tag::x);
    const auto made = forward(runtime.engine(), values, name.algorithm, name.alpha);
    return Plan{{label, runtime, made, {{DNNL_ARG_SRC, values}, {DNNL_ARG_DST, values}}}};
  });
  plan.primitive.execute(runtime, {x, y});
}

DIST_INLINE void compute_activation_gradient(State& state, Compiled& compiled, Eltwise function, std::size_t count,
                                             const void* value, const void* dy, void* dx) {
  Runtime& runtime = state.runtime();
  const EltwiseName name = name_of(function);
  const Label label{"the gradient of an activation", &describe_elements};
  Plan& plan = plan_for(compiled, count, label, [&] {
    const Descriptor values = tensor({dim(count)}, Tag::x);
    const Primitive::Argument of_value{name.of_output ? DNNL_ARG_DST : DNNL_ARG_SRC, values};
    const Primitive::Argument of_dy{DNNL_ARG_DIFF_DST, values}, of_dx{DNNL_ARG_DIFF_SRC, values};
    return Plan{{label, runtime, backward(runtime.engine(), values, name), {of_value, of_dy, of_dx}}};
  });
  plan.primitive.execute(runtime, {value, dy, dx});
}

DIST_INLINE void compute_softmax(State& state, Compiled& compiled, const Label& label, std::size_t rows,
                                 std::size_t classes, const void* x, void* y) {
  Runtime& runtime = state.runtime();
  Plan& plan = plan_for(compiled, rows, label, [&] {
    const Descriptor values = tensor({dim(rows), dim(classes)}, Tag::ab);
    const auto made = softmax(runtime.engine(), values);
    return Plan{{label, runtime, made, {{DNNL_ARG_SRC, values}, {DNNL_ARG_DST, values}}}};
  });
  plan.primitive.execute(runtime, {x, y});
}

}  // namespace dist::nn::onednn
