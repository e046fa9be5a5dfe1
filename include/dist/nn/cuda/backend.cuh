#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/type_traits.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/nn/backend.hpp>
#include <dist/nn/cuda/attention.cuh>
#include <dist/nn/cuda/column_sums.cuh>
#include <dist/nn/cuda/conv2d.cuh>
#include <dist/nn/cuda/dense.cuh>
#include <dist/nn/cuda/dropout.cuh>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/memory.cuh>
#include <dist/nn/cuda/pool2d.cuh>
#include <dist/nn/cuda/rows.cuh>
#include <dist/nn/cuda/state.cuh>
#include <dist/nn/geometry.hpp>

namespace dist::nn::cuda {

/// Placeholder; <dist/nn/cuda/embedding.cuh> has the implementation.
template <std::size_t Words, std::size_t Width, class T>
class Embedding {
  static_assert(::dist::detail::always_false<T>,
                "nn::Embedding on a GPU sorts with CUB: include <dist/nn/cuda/embedding.cuh> in programs that use it");

 public:
  void forward(const auto&...) {}
  void add_table_gradient(const auto&...) {}
};

}  // namespace dist::nn::cuda

namespace dist::nn {

/// A back end on GPUs, in float: matrix products by cuBLAS, convolutions by cuDNN, all other operations by kernels of
/// this library. Batches, targets and gradients are in GPU memory; steps enqueue work on the replica's queue. Results
/// are deterministic, bit for bit. Needs the component dist::nn_cuda.
struct Cuda {
  static constexpr std::string_view name = "CUDA";
  using Device = dist::Cuda;
  using State = cuda::State;
  template <class T>
  using Memory = cuda::Memory<T>;

  template <class T>
  static constexpr bool supports = std::same_as<T, float>;

  /// See nn/row.hpp.
  template <class Body>
  static void for_each_row(State& state, std::size_t rows, std::size_t size, const Body& body) {
    cuda::for_each_row(state, rows, size, body);
  }
  template <class Terms>
  static void sum_columns(State& state, std::size_t rows, std::size_t columns, const Terms& terms,
                          typename Terms::Sum* to) {
    cuda::sum_columns(state, rows, columns, terms, to);
  }

  template <class Geometry, class T>
  using Dense = cuda::Dense<Geometry, T>;
  template <class Geometry, class T>
  using Conv2D = cuda::Conv2D<Geometry, T>;
  template <class Geometry, class T>
  using MaxPool2D = cuda::MaxPool2D<Geometry, T>;
  template <class Geometry, class T>
  using AveragePool2D = cuda::AveragePool2D<Geometry, T>;
  template <class Image, class T>
  using GlobalAveragePool2D = cuda::AveragePool2D<GlobalPoolGeometry<Image>, T>;
  template <class Image, class T>
  using GlobalMaxPool2D = cuda::MaxPool2D<GlobalPoolGeometry<Image>, T>;
  template <std::size_t Numerator, std::size_t Denominator, class T>
  using Dropout = cuda::Dropout<Numerator, Denominator, T>;
  template <class Geometry, class T>
  using Attention = cuda::Attention<Geometry, T>;
  template <std::size_t Words, std::size_t Width, class T>
  using Embedding = cuda::Embedding<Words, Width, T>;
  /// y = Function(x) for each element, also in place.
  template <class Function, class T>
  using Elementwise = cuda::Elementwise<Function, T>;
};

/// The name before version 0.3.
using CuDnn = Cuda;

}  // namespace dist::nn
