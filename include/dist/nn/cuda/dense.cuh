#pragma once

#include <cstddef>

#include <dist/core/contract.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/api.hpp>
#include <dist/nn/cuda/column_sums.cuh>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/state.cuh>
#include <dist/nn/row.hpp>

namespace dist::nn::cuda {

/// Matrix products by cuBLAS, which is column-major: it reads row-major matrices as transposes, so factors are
/// swapped.
template <class Geometry, class T>
class Dense {
  static constexpr int inputs = static_cast<int>(Geometry::inputs);
  static constexpr int units = static_cast<int>(Geometry::units);
  static_assert(Geometry::inputs <= 0x7fffffff && Geometry::units <= 0x7fffffff,
                "this dense layer is too large for cuBLAS, whose sizes have the type int");

 public:
  void forward(State& state, View<const T> x, View<const T> kernel, View<const T> bias, View<T> y) {
    multiply(state, CUBLAS_OP_N, CUBLAS_OP_N, units, rows_of(x), inputs, kernel.data(), units, x.data(), inputs,
             y.data(), units);
    finish_products<Geometry>(state, y, bias);
  }

  void parameter_gradients(State& state, View<const T> x, View<const T> dy, View<T> kernel_gradient,
                           [[maybe_unused]] View<T> bias_gradient) {
    multiply(state, CUBLAS_OP_N, CUBLAS_OP_T, units, inputs, rows_of(x), dy.data(), units, x.data(), inputs,
             kernel_gradient.data(), units);
    if constexpr (Geometry::has_bias)
      sum_columns(state, dy.rows(), Geometry::units, nn::detail::SumOfElements<T>{dy.data(), Geometry::units},
                  bias_gradient.data());
  }

  void input_gradient(State& state, View<const T> dy, View<const T> kernel, View<T> dx) {
    multiply(state, CUBLAS_OP_T, CUBLAS_OP_N, inputs, rows_of(dy), units, kernel.data(), units, dy.data(), units,
             dx.data(), inputs);
  }

 private:
  [[nodiscard]] static int rows_of(View<const T> batch) {
    DIST_EXPECT(batch.rows() <= 0x7fffffff);
    return static_cast<int>(batch.rows());
  }

  /// c = a b in column-major order; c is [m, n], and the factors share `k`.
  static void multiply(const State& state, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k,
                       const T* a, int a_stride, const T* b, int b_stride, T* c, int c_stride) {
    const T one{1}, zero{0};
    DIST_CUBLAS_CHECK(
        cublasSgemm(state.blas(), of_a, of_b, m, n, k, &one, a, a_stride, b, b_stride, &zero, c, c_stride));
  }
};

}  // namespace dist::nn::cuda
