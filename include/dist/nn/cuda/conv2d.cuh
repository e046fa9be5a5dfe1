#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/api.hpp>
#include <dist/nn/cuda/column_sums.cuh>
#include <dist/nn/cuda/descriptor.hpp>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/state.cuh>
#include <dist/nn/plans.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn::cuda {

/// to = the transpose of `from`, a matrix [rows, columns].
template <class T>
struct Transpose {
  const T* from;
  T* to;
  std::size_t rows, columns;
  DIST_HD void operator()(std::size_t i) const { to[i] = from[i % rows * columns + i / rows]; }
};

/// Images with additional zeros after the last row and column; cuDNN only pads symmetrically.
template <class Geometry>
struct PaddedImages {
  using G = Geometry;
  // Surplus padding before an image does no harm: no window reaches it.
  static constexpr std::size_t more_rows = G::pad_bottom > G::pad_top ? G::pad_bottom - G::pad_top : 0;
  static constexpr std::size_t more_columns = G::pad_right > G::pad_left ? G::pad_right - G::pad_left : 0;
  static constexpr std::size_t height = G::height + more_rows;
  static constexpr std::size_t width = G::width + more_columns;
  static constexpr bool are_larger = more_rows + more_columns > 0;

  /// Copies images to padded images.
  template <class T>
  struct Pad {
    const T* from;
    T* to;
    DIST_HD void operator()(std::size_t i) const {
      const std::size_t channel = i % G::channels, pixel = i / G::channels;
      const std::size_t column = pixel % width, row = pixel / width % height, image = pixel / (width * height);
      to[i] = row < G::height && column < G::width
                  ? from[((image * G::height + row) * G::width + column) * G::channels + channel]
                  : T{0};
    }
  };
  /// Copies padded images to images.
  template <class T>
  struct Crop {
    const T* from;
    T* to;
    DIST_HD void operator()(std::size_t i) const {
      const std::size_t channel = i % G::channels, pixel = i / G::channels;
      const std::size_t column = pixel % G::width, row = pixel / G::width % G::height,
                        image = pixel / (G::width * G::height);
      to[i] = from[((image * height + row) * width + column) * G::channels + channel];
    }
  };
};

/// A convolution by cuDNN on images in their plain layout, with deterministic algorithms. Kernels are transposed,
/// because cuDNN's have the filters outermost. cuDNN cannot pad more after an image than before it, so such padding
/// is explicit.
template <class Geometry, class T>
class Conv2D {
  using G = Geometry;
  using Padded = PaddedImages<Geometry>;
  static constexpr std::size_t taps = G::window_height * G::window * G::group_channels;
  static constexpr std::size_t kernel_size = taps * G::filters;
  static constexpr std::size_t padded_size = Padded::height * Padded::width * G::channels;
  static_assert(kernel_size <= 0x7fffffff && padded_size <= 0x7fffffff &&
                    G::output_height * G::output_width * G::filters <= 0x7fffffff,
                "this convolution is too large for cuDNN, whose sizes have the type int");

 public:
  void forward(State& state, View<const T> x, View<const T> kernel, View<const T> bias, View<T> y) {
    auto& plan = forward_.for_rows(x.rows(), [&] { return Plan<Forward>{state, x.rows()}; });
    const Parts parts = parts_of(state, x.rows(), plan.bytes);
    transpose(state, kernel.data(), parts.kernel, taps, G::filters);
    DIST_CUDNN_CHECK(cudnnConvolutionForward(state.dnn(), &one, plan.images.get(), padded(state, x, parts),
                                             plan.kernel.get(), parts.kernel, plan.convolution.get(), plan.algorithm,
                                             parts.work, plan.bytes, &zero, plan.outputs.get(), y.data()));
    finish_products<G>(state, y, bias);
  }

  void parameter_gradients(State& state, View<const T> x, View<const T> dy, View<T> kernel_gradient,
                           [[maybe_unused]] View<T> bias_gradient) {
    auto& plan = kernel_gradient_.for_rows(x.rows(), [&] { return Plan<KernelGradient>{state, x.rows()}; });
    const Parts parts = parts_of(state, x.rows(), plan.bytes);
    DIST_CUDNN_CHECK(cudnnConvolutionBackwardFilter(
        state.dnn(), &one, plan.images.get(), padded(state, x, parts), plan.outputs.get(), dy.data(),
        plan.convolution.get(), plan.algorithm, parts.work, plan.bytes, &zero, plan.kernel.get(), parts.kernel));
    transpose(state, parts.kernel, kernel_gradient.data(), G::filters, taps);
    if constexpr (G::has_bias)
      sum_columns(state, dy.size() / G::filters, G::filters, nn::detail::SumOfElements<T>{dy.data(), G::filters},
                  bias_gradient.data());
  }

  void input_gradient(State& state, View<const T> dy, View<const T> kernel, View<T> dx) {
    auto& plan = input_gradient_.for_rows(dy.rows(), [&] { return Plan<InputGradient>{state, dy.rows()}; });
    const Parts parts = parts_of(state, dy.rows(), plan.bytes);
    transpose(state, kernel.data(), parts.kernel, taps, G::filters);
    T* const to = Padded::are_larger ? parts.images : dx.data();
    DIST_CUDNN_CHECK(cudnnConvolutionBackwardData(state.dnn(), &one, plan.kernel.get(), parts.kernel,
                                                  plan.outputs.get(), dy.data(), plan.convolution.get(), plan.algorithm,
                                                  parts.work, plan.bytes, &zero, plan.images.get(), to));
    if constexpr (Padded::are_larger)
      state.queue().for_each({0, dx.size()}, typename Padded::template Crop<T>{to, dx.data()});
  }

 private:
  static constexpr T one{1}, zero{0};

  /// The cuDNN descriptors for `rows` images.
  struct Tensors {
    Tensors(std::size_t rows, cudnnMathType_t math)
        : images(cuda::images(count(rows), count(Padded::height), count(Padded::width), count(G::channels))),
          outputs(cuda::images(count(rows), count(G::output_height), count(G::output_width), count(G::filters))),
          kernel(kernels(count(G::filters), count(G::window_height), count(G::window), count(G::group_channels))),
          convolution(correlation(count(G::pad_top), count(G::pad_left), count(G::stride), count(G::groups), math)) {}
    TensorDescriptor images, outputs;
    FilterDescriptor kernel;
    ConvolutionDescriptor convolution;
  };
  [[nodiscard]] static int count(std::size_t number) {
    DIST_EXPECT(number <= 0x7fffffff);
    return static_cast<int>(number);
  }

  /// The three calls: how to find algorithms, and their workspace sizes.
  struct Forward {
    using Candidate = cudnnConvolutionFwdAlgoPerf_t;
    static cudnnStatus_t find(cudnnHandle_t dnn, const Tensors& of, int most, int* found, Candidate* candidates) {
      return cudnnGetConvolutionForwardAlgorithm_v7(dnn, of.images.get(), of.kernel.get(), of.convolution.get(),
                                                    of.outputs.get(), most, found, candidates);
    }
    static cudnnStatus_t size(cudnnHandle_t dnn, const Tensors& of, cudnnConvolutionFwdAlgo_t algorithm,
                              std::size_t* bytes) {
      return cudnnGetConvolutionForwardWorkspaceSize(dnn, of.images.get(), of.kernel.get(), of.convolution.get(),
                                                     of.outputs.get(), algorithm, bytes);
    }
  };
  struct KernelGradient {
    using Candidate = cudnnConvolutionBwdFilterAlgoPerf_t;
    static cudnnStatus_t find(cudnnHandle_t dnn, const Tensors& of, int most, int* found, Candidate* candidates) {
      return cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, of.images.get(), of.outputs.get(), of.convolution.get(),
                                                           of.kernel.get(), most, found, candidates);
    }
    static cudnnStatus_t size(cudnnHandle_t dnn, const Tensors& of, cudnnConvolutionBwdFilterAlgo_t algorithm,
                              std::size_t* bytes) {
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, of.images.get(), of.outputs.get(),
                                                            of.convolution.get(), of.kernel.get(), algorithm, bytes);
    }
  };
  struct InputGradient {
    using Candidate = cudnnConvolutionBwdDataAlgoPerf_t;
    static cudnnStatus_t find(cudnnHandle_t dnn, const Tensors& of, int most, int* found, Candidate* candidates) {
      return cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, of.kernel.get(), of.outputs.get(), of.convolution.get(),
                                                         of.images.get(), most, found, candidates);
    }
    static cudnnStatus_t size(cudnnHandle_t dnn, const Tensors& of, cudnnConvolutionBwdDataAlgo_t algorithm,
                              std::size_t* bytes) {
      return cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, of.kernel.get(), of.outputs.get(), of.convolution.get(),
                                                          of.images.get(), algorithm, bytes);
    }
  };

  /// A call for one batch size, by the deterministic algorithm that cuDNN expects to be the fastest.
  template <class Call>
  struct Plan : Tensors {
    Plan(State& state, std::size_t rows) : Tensors(rows, state.convolution_math()) {
      std::array<typename Call::Candidate, 16> candidates{};
      int found = 0;
      cuda::check(Call::find(state.dnn(), *this, static_cast<int>(candidates.size()), &found, candidates.data()),
                  "finding an algorithm");
      for (const auto& candidate : std::span{candidates}.first(static_cast<std::size_t>(found)))
        if (candidate.status == CUDNN_STATUS_SUCCESS && candidate.determinism == CUDNN_DETERMINISTIC) {
          const cudnnStatus_t sized = Call::size(state.dnn(), *this, candidate.algo, &bytes);
          if (CUDNN_STATUS_CATEGORY(sized) == CUDNN_STATUS_NOT_SUPPORTED) continue;
          cuda::check(sized, "querying the workspace size of an algorithm");
          algorithm = candidate.algo;
          return;
        }
      throw InvalidArgument("cuDNN has no deterministic algorithm for this convolution", Geometry::describe(),
                            "Use a layer of another geometry, or a back end on the host");
    }
    decltype(Call::Candidate::algo) algorithm{};
    std::size_t bytes = 0;
  };

  /// The workspace: a kernel or its gradient with the filters outermost, padded images, and cuDNN's part.
  struct Parts {
    T* kernel;
    T* images;
    std::byte* work;
  };
  [[nodiscard]] static Parts parts_of(State& state, std::size_t rows, std::size_t work_bytes) {
    const auto aligned = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
    const std::size_t kernel_bytes = aligned(kernel_size * sizeof(T));
    const std::size_t images_bytes = Padded::are_larger ? aligned(rows * padded_size * sizeof(T)) : 0;
    std::byte* const all = state.workspace(kernel_bytes + images_bytes + work_bytes);
    return {reinterpret_cast<T*>(all), reinterpret_cast<T*>(all + kernel_bytes), all + kernel_bytes + images_bytes};
  }

  /// Returns the images with explicit padding if necessary.
  [[nodiscard]] static const T* padded(State& state, View<const T> x, const Parts& parts) {
    if constexpr (!Padded::are_larger) {
      return x.data();
    } else {
      state.queue().for_each({0, x.rows() * padded_size}, typename Padded::template Pad<T>{x.data(), parts.images});
      return parts.images;
    }
  }
  static void transpose(State& state, const T* from, T* to, std::size_t rows, std::size_t columns) {
    state.queue().for_each({0, rows * columns}, Transpose<T>{from, to, rows, columns});
  }

  Plans<Plan<Forward>> forward_;
  Plans<Plan<KernelGradient>> kernel_gradient_;
  Plans<Plan<InputGradient>> input_gradient_;
};

}  // namespace dist::nn::cuda
