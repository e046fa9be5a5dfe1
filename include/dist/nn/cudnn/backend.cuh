#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/device/cuda/device.cuh>
#include <dist/nn/backend.hpp>
#include <dist/nn/cudnn/dense.cuh>
#include <dist/nn/cudnn/elementwise.cuh>
#include <dist/nn/cudnn/memory.cuh>
#include <dist/nn/cudnn/state.cuh>

namespace dist::nn {

/// Layers on GPUs, in float: dense products by cuBLAS, what works element by element by kernels of ours. Batches, targets
/// and gradients lie in the GPU's memory; a step puts its work into the replica's queue. Dense and activations so far.
/// Needs the component dist::cudnn.
struct CuDnn {
  static constexpr std::string_view name = "cuDNN";
  using Device = Cuda;
  using State = cudnn::State;
  template <class T>
  using Memory = cudnn::Memory<T>;

  template <class T>
  static constexpr bool supports = std::same_as<T, float>;

  template <class Geometry, class T>
  using Dense = cudnn::Dense<Geometry, T>;
  /// Also works in place.
  template <class Function, class T>
  using Elementwise = cudnn::Elementwise<Function, T>;
};

}  // namespace dist::nn
