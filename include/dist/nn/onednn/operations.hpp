/// oneDNN's operations on floats, with extents as run-time arguments, compiled once for all layers. Only their
/// implementation includes oneDNN's C++ interface.
#pragma once

#include <cstddef>
#include <string>

#include <dist/core/float16.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/onednn/error.hpp>

namespace dist::nn::onednn {

class Runtime;

/// Resources that one replica's operations share, because they run one at a time: oneDNN's engine and stream, a
/// scratchpad, and a buffer for copies.
class State {
 public:
  State();
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Restricts oneDNN to the calling thread during its lifetime, because a replica has one core, then restores the
  /// OpenMP setting for parallel loops of the host program.
  class OneThread {
   public:
    OneThread();
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;
    ~OneThread();

   private:
    int before_;
  };
  [[nodiscard]] OneThread enter() const { return {}; }

  [[nodiscard]] Runtime& runtime() const noexcept { return *runtime_; }
  /// Returns memory for `count` floats, until the replica's next operation.
  [[nodiscard]] float* scratch(std::size_t count);

 private:
  std::unique_ptr<Runtime> runtime_;
};

/// A layer operation's compiled primitives, per batch size.
struct OperationPlans;
struct DeletePlans {
  void operator()(OperationPlans* plans) const;
};
/// Null until the first call.
using Compiled = std::unique_ptr<OperationPlans, DeletePlans>;

/// The type of a product's factors. Sums and results are floats.
enum class Factors : unsigned char { float32, bfloat16 };
/// True if the processor has AVX512-BF16, unless DIST_MAX_ISA or ONEDNN_MAX_CPU_ISA hides it.
[[nodiscard]] bool multiplies_bfloat16();
/// True if these instructions multiply BFloat16 numbers faster than floats: on AMD's processors, about twice as fast on
/// Zen 4. Intel's Sapphire Rapids takes 1.6 to 1.9 times as long for them.
[[nodiscard]] bool multiplies_bfloat16_faster();

struct DenseSizes {
  std::size_t inputs, units;
  bool has_bias;
  std::string (*describe)();
  Factors factors = Factors::float32;
};
/// y = x · kernel + bias, without a bias if `sizes` say so, here and in convolutions. All functions here throw
/// OneDnnError.
void multiply(State& state, Compiled& compiled, const DenseSizes& sizes, std::size_t rows, const void* x,
              const void* kernel, const void* bias, void* y);
/// kernel_gradient = xᵀ · dy.
void compute_kernel_gradient(State& state, Compiled& compiled, const DenseSizes& sizes, std::size_t rows, const void* x,
                             const void* dy, void* kernel_gradient);
/// dx = dy · kernelᵀ.
void compute_input_gradient(State& state, Compiled& compiled, const DenseSizes& sizes, std::size_t rows, const void* dy,
                            const void* kernel, void* dx);
/// The sum of dy over all rows, in order.
void compute_bias_gradient(const DenseSizes& sizes, std::size_t rows, const BFloat16* dy, float* bias_gradient);

struct Conv2DSizes {
  std::size_t channels, height, width, filters, output_height, output_width, groups;
  std::size_t window_height, window, stride;
  std::size_t pad_top, pad_left, pad_bottom, pad_right;
  bool has_bias;
  std::string (*describe)();
  Factors factors = Factors::float32;
};
/// A convolution of images in their plain layout. oneDNN chooses the layout of the small kernel, which is copied in
/// each call: the plain one would take four times as long.
void convolve(State& state, Compiled& compiled, const Conv2DSizes& sizes, std::size_t rows, const void* x,
              const void* kernel, const void* bias, void* y);
void compute_kernel_gradient(State& state, Compiled& compiled, const Conv2DSizes& sizes, std::size_t rows,
                             const void* x, const void* dy, void* kernel_gradient, void* bias_gradient);
void compute_input_gradient(State& state, Compiled& compiled, const Conv2DSizes& sizes, std::size_t rows,
                            const void* dy, const void* kernel, void* dx);

/// A row-major factor: its address, its row stride in elements, and 'T' if transposed.
struct Factor {
  const float* data = nullptr;
  std::size_t stride = 0;
  char transposed = 'N';
};
/// The sizes of a product of [rows, inner] and [inner, columns].
struct Extents {
  std::size_t rows, inner, columns;
};
/// Adds a · b to `sum`, whose rows are `stride` apart.
void add_product(const Label& label, Factor a, Factor b, float* sum, std::size_t stride, Extents extents);

/// oneDNN's activations; others, such as Relu, use loops that the compiler vectorises.
enum class Eltwise : unsigned char { none, elu, tanh, sigmoid, gelu, gelu_tanh, silu };
template <class Function>
inline constexpr Eltwise eltwise_of = Eltwise::none;
template <>
inline constexpr Eltwise eltwise_of<Elu<1, 1>> = Eltwise::elu;
template <>
inline constexpr Eltwise eltwise_of<Tanh> = Eltwise::tanh;
template <>
inline constexpr Eltwise eltwise_of<Sigmoid> = Eltwise::sigmoid;
template <>
inline constexpr Eltwise eltwise_of<Gelu> = Eltwise::gelu;
template <>
inline constexpr Eltwise eltwise_of<GeluTanh> = Eltwise::gelu_tanh;
template <>
inline constexpr Eltwise eltwise_of<Silu> = Eltwise::silu;

/// Applies an activation to `count` elements.
void activate(State& state, Compiled& compiled, Eltwise function, std::size_t count, const void* x, void* y);
/// `value` is y if the function HasGradientOfOutput, otherwise x.
void compute_activation_gradient(State& state, Compiled& compiled, Eltwise function, std::size_t count,
                                 const void* value, const void* dy, void* dx);
/// exp(x) / sum(exp(x)) in each of `rows` rows.
void compute_softmax(State& state, Compiled& compiled, const Label& label, std::size_t rows, std::size_t classes,
                     const void* x, void* y);

}  // namespace dist::nn::onednn

#ifndef DIST_COMPILED
#include <dist/nn/onednn/operations.ipp>
#endif
