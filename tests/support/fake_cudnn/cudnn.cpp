// The cuDNN functions that the library calls. A handle belongs to the GPU that was selected at its creation.
#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "library.hpp"
#include "machine.hpp"

struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};
// Descriptors; an extent of 0 is not set yet.
struct cudnnTensorStruct {
  int images = 0, height = 0, width = 0, channels = 0;
};
struct cudnnFilterStruct {
  int filters = 0, height = 0, width = 0, channels = 0;
};
struct cudnnConvolutionStruct {
  int pad_height = 0, pad_width = 0, stride = 0, groups = 1;
  cudnnMathType_t math = CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;  // unsupported by the fake, until it is set
};

namespace {

using fake_cudnn::refuse;

std::set<const void*>& live_handles() {
  static std::set<const void*> all;
  return all;
}
std::set<const void*>& live_descriptors() {
  static std::set<const void*> all;
  return all;
}

template <class Body>
cudnnStatus_t call(std::string_view function, Body&& body) {
  return fake_cudnn::call(function, CUDNN_STATUS_SUCCESS, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                          CUDNN_STATUS_NOT_SUPPORTED_SHAPE, CUDNN_STATUS_EXECUTION_FAILED, body);
}

template <class Descriptor>
cudnnStatus_t create(std::string_view function, Descriptor** made) {
  return call(function, [&] { live_descriptors().insert(*made = new Descriptor); });
}
template <class Descriptor>
Descriptor& known(std::string_view function, Descriptor* descriptor) {
  if (!live_descriptors().contains(descriptor))
    refuse(std::string(function) + " of a descriptor that does not exist, or not any more");
  return *descriptor;
}
template <class Descriptor>
cudnnStatus_t destroy(std::string_view function, Descriptor* descriptor) {
  return call(function, [&] {
    live_descriptors().erase(&known(function, descriptor));
    delete descriptor;
  });
}

cudnnContext& context_of(cudnnHandle_t handle, std::string_view function) {
  if (!live_handles().contains(handle))
    refuse(std::string(function) + " of a handle that does not exist, or not any more");
  fake_cudnn::require_chosen(function, handle->device);
  return *handle;
}

void require_images(std::string_view function, cudnnTensorFormat_t format, cudnnDataType_t type,
                    std::array<int, 4> extents) {
  if (format != CUDNN_TENSOR_NHWC || type != CUDNN_DATA_FLOAT)
    refuse(std::string(function) + ": the fake computes with floats, and with the channels innermost");
  for (const int extent : extents)
    if (extent <= 0) refuse(std::string(function) + " with an extent of " + std::to_string(extent));
}

template <class Extents>
std::size_t size_of(const Extents& of, int count) {
  return std::size_t{1} * unsigned(count) * unsigned(of.height) * unsigned(of.width) * unsigned(of.channels);
}

/// A convolution of images x by kernels w with results y, as described by the descriptors.
struct Convolution {
  cudnnTensorStruct x;
  cudnnFilterStruct w;
  cudnnConvolutionStruct how;
  cudnnTensorStruct y;

  Convolution(const std::string& function, cudnnTensorDescriptor_t images, cudnnFilterDescriptor_t kernels,
              cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t results)
      : x(known(function, images)),
        w(known(function, kernels)),
        how(known(function, convolution)),
        y(known(function, results)) {
    if (x.images == 0 || w.filters == 0 || how.stride == 0 || y.images == 0)
      refuse(function + " with a descriptor that was not set");
    if (how.math != CUDNN_FMA_MATH && how.math != CUDNN_DEFAULT_MATH)
      refuse(function + " with numbers that may be shorter: set CUDNN_FMA_MATH, or for TF32 CUDNN_DEFAULT_MATH");
    const auto outputs = [&](int extent, int pad, int window) { return (extent + 2 * pad - window) / how.stride + 1; };
    if (w.filters % how.groups != 0)
      refuse(function + " of " + std::to_string(w.filters) + " kernels in " + std::to_string(how.groups) + " groups");
    if (x.channels != how.groups * w.channels || y.channels != w.filters || y.images != x.images ||
        y.height != outputs(x.height, how.pad_height, w.height) || y.width != outputs(x.width, how.pad_width, w.width))
      refuse(function + " of images, kernels and results that do not fit each other");
  }

  /// Converts a factor to its precision in products.
  [[nodiscard]] double as_factor(float of) const {
    return static_cast<double>(fake_cudnn::as_multiplied(of, how.math == CUDNN_DEFAULT_MATH));
  }
  [[nodiscard]] std::size_t images_size() const { return size_of(x, x.images); }
  [[nodiscard]] std::size_t results_size() const { return size_of(y, y.images); }
  [[nodiscard]] std::size_t kernels_size() const { return size_of(w, w.filters); }
  /// The workspace size of an algorithm. It is overwritten, so that tests detect other data there.
  [[nodiscard]] std::size_t workspace_bytes() const { return 512 + 4 * unsigned(w.filters); }

  /// Calls `visit(result, pixel, tap)` for each product in the sum of each result: the offsets of one channel vector in
  /// the images and in the kernels.
  template <class Visit>
  void for_each_product(const Visit& visit) const {
    std::size_t result = 0;
    for (int image = 0; image < x.images; ++image)
      for (int row = 0; row < y.height; ++row)
        for (int column = 0; column < y.width; ++column)
          for (int filter = 0; filter < w.filters; ++filter, ++result)
            for (int down = 0; down < w.height; ++down)
              for (int right = 0; right < w.width; ++right) {
                const int at_row = row * how.stride + down - how.pad_height;
                const int at_column = column * how.stride + right - how.pad_width;
                if (at_row < 0 || at_row >= x.height || at_column < 0 || at_column >= x.width) continue;
                const auto pixel = static_cast<std::size_t>((image * x.height + at_row) * x.width + at_column);
                const auto tap = static_cast<std::size_t>((filter * w.height + down) * w.width + right);
                const auto group = static_cast<std::size_t>(filter / (w.filters / how.groups));
                visit(result, pixel * unsigned(x.channels) + group * unsigned(w.channels), tap * unsigned(w.channels));
              }
  }
};

/// Submits the work of one of the three calls to the handle's stream: `add(sums, first, second)` sums products of two
/// tensors; the third becomes alpha times the sums plus beta times its old value.
template <class Add>
void put(const std::string& function, cudnnHandle_t handle, const void* alpha, const void* beta, bool is_deterministic,
         void* workspace, std::size_t workspace_bytes, const Convolution& of, std::span<const float> first,
         std::span<const float> second, std::span<float> to, Add add) {
  const cudnnContext& context = context_of(handle, function);
  if (context.stream == nullptr) refuse(function + " on the legacy stream, which waits for all others");
  if (!is_deterministic)
    refuse(function + " by an algorithm that the heuristics say gives other bits each time, or none");
  fake_cudnn::require_factors(function, static_cast<const float*>(alpha), static_cast<const float*>(beta));
  if (workspace_bytes < of.workspace_bytes())
    refuse(function + " with a workspace of " + std::to_string(workspace_bytes) + " bytes, where it takes " +
           std::to_string(of.workspace_bytes()));
  fake_cudnn::require_memory(function + ": the workspace", workspace, workspace_bytes, context.device);
  fake_cudnn::require_memory(function + ": the first operand", first.data(), first.size_bytes(), context.device);
  fake_cudnn::require_memory(function + ": the second operand", second.data(), second.size_bytes(), context.device);
  fake_cudnn::require_memory(function + ": the result", to.data(), to.size_bytes(), context.device);
  CUstream_st& stream = fake_cuda::handles().stream(context.stream, function);
  fake_cuda::OperationRef operation = fake_cuda::next_operation(stream, function);
  operation->addresses = {workspace, first.data(), second.data(), to.data()};
  if (of.how.math == CUDNN_DEFAULT_MATH) ++fake_cudnn::count_of_short_products();
  operation->work = std::make_shared<const std::function<void()>>(
      [=, by = *static_cast<const float*>(alpha), keeps = *static_cast<const float*>(beta)] {
        fake_cuda::writes(workspace, workspace_bytes);
        fake_cuda::reads(first.data(), first.size_bytes());
        fake_cuda::reads(second.data(), second.size_bytes());
        fake_cuda::writes(to.data(), to.size_bytes());
        const fake_cuda::UnseenAccesses unseen;
        std::memset(workspace, 0xAB, workspace_bytes);
        std::vector<double> sums(to.size(), 0.0);
        add(sums.data());
        for (std::size_t i = 0; i < to.size(); ++i)
          to[i] = by * static_cast<float>(sums[i]) + (keeps == 0 ? 0 : keeps * to[i]);  // unused if beta is 0
      });
  fake_cuda::put_on(stream, std::move(operation));
}

template <class Candidate, class Algorithm>
Candidate candidate(Algorithm algorithm, cudnnDeterminism_t determinism, cudnnStatus_t status = CUDNN_STATUS_SUCCESS) {
  Candidate made{};
  made.algo = algorithm;
  made.status = status;
  made.determinism = determinism;
  made.mathType = CUDNN_FMA_MATH;
  return made;
}
/// Returns candidates like the heuristics: fastest first.
template <class Candidate>
void answer(int most, int* found, Candidate* to, std::initializer_list<Candidate> candidates) {
  *found = 0;
  for (const Candidate& each : candidates)
    if (*found < most) to[(*found)++] = each;
}

}  // namespace

std::size_t fake_cudnn::live_dnn_handles() {
  std::size_t count = 0;
  static_cast<void>(::call("live_dnn_handles", [&] { count = ::live_handles().size(); }));
  return count;
}
std::size_t fake_cudnn::live_descriptors() {
  std::size_t count = 0;
  static_cast<void>(::call("live_descriptors", [&] { count = ::live_descriptors().size(); }));
  return count;
}

extern "C" {

const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
             ? "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
             : "CUDNN_STATUS_EXECUTION_FAILED";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return call("cudnnCreate", [&] {
    auto made = std::make_unique<cudnnContext>();
    made->device = fake_cuda::chosen_device();
    live_handles().insert(*handle = made.release());
  });
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return call("cudnnDestroy", [&] {
    const std::unique_ptr<cudnnContext> owned{&context_of(handle, "cudnnDestroy")};
    live_handles().erase(handle);
  });
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return call("cudnnSetStream", [&] {
    cudnnContext& context = context_of(handle, "cudnnSetStream");
    if (fake_cuda::handles().stream(stream, "cudnnSetStream").device != context.device)
      refuse("cudnnSetStream with a stream of another GPU than the handle's");
    context.stream = stream;
  });
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  return create("cudnnCreateTensorDescriptor", made);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  return destroy("cudnnDestroyTensorDescriptor", descriptor);
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) {
  return create("cudnnCreateFilterDescriptor", made);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  return destroy("cudnnDestroyFilterDescriptor", descriptor);
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  return create("cudnnCreateConvolutionDescriptor", made);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  return destroy("cudnnDestroyConvolutionDescriptor", descriptor);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  return call("cudnnSetTensor4dDescriptor", [&] {
    require_images("cudnnSetTensor4dDescriptor", format, type, {n, c, h, w});
    known("cudnnSetTensor4dDescriptor", descriptor) = {n, h, w, c};
  });
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  return call("cudnnSetFilter4dDescriptor", [&] {
    require_images("cudnnSetFilter4dDescriptor", format, type, {k, c, h, w});
    known("cudnnSetFilter4dDescriptor", descriptor) = {k, h, w, c};
  });
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h, int pad_w, int u,
                                              int v, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  return call("cudnnSetConvolution2dDescriptor", [&] {
    if (pad_h < 0 || pad_w < 0 || u <= 0 || u != v || dilation_h != 1 || dilation_w != 1 ||
        mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT)
      refuse(
          "cudnnSetConvolution2dDescriptor: the fake computes correlations in float, with equal strides and without "
          "dilation");
    known("cudnnSetConvolution2dDescriptor", descriptor) = {pad_h, pad_w, u};
  });
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  return call("cudnnSetConvolutionGroupCount", [&] {
    if (groups <= 0) refuse("cudnnSetConvolutionGroupCount with " + std::to_string(groups) + " groups");
    known("cudnnSetConvolutionGroupCount", descriptor).groups = groups;
  });
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor, cudnnMathType_t type) {
  return call("cudnnSetConvolutionMathType", [&] { known("cudnnSetConvolutionMathType", descriptor).math = type; });
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t how,
                                                     cudnnTensorDescriptor_t y, int most, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* candidates) {
  using Candidate = cudnnConvolutionFwdAlgoPerf_t;
  constexpr const char* name = "cudnnGetConvolutionForwardAlgorithm_v7";
  return call(name, [&] {
    static_cast<void>(context_of(handle, name));
    static_cast<void>(Convolution{name, x, w, how, y});
    answer(most, found, candidates,
           {candidate<Candidate>(CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_DETERMINISTIC, CUDNN_STATUS_NOT_SUPPORTED),
            candidate<Candidate>(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_DETERMINISTIC)});
  });
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t how,
                                                            cudnnFilterDescriptor_t w, int most, int* found,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* candidates) {
  using Candidate = cudnnConvolutionBwdFilterAlgoPerf_t;
  constexpr const char* name = "cudnnGetConvolutionBackwardFilterAlgorithm_v7";
  return call(name, [&] {
    static_cast<void>(context_of(handle, name));
    static_cast<void>(Convolution{name, x, w, how, y});
    answer(most, found, candidates,
           {candidate<Candidate>(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_NON_DETERMINISTIC),
            candidate<Candidate>(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_DETERMINISTIC)});
  });
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t how,
                                                          cudnnTensorDescriptor_t x, int most, int* found,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* candidates) {
  using Candidate = cudnnConvolutionBwdDataAlgoPerf_t;
  constexpr const char* name = "cudnnGetConvolutionBackwardDataAlgorithm_v7";
  return call(name, [&] {
    static_cast<void>(context_of(handle, name));
    static_cast<void>(Convolution{name, x, w, how, y});
    answer(most, found, candidates,
           {candidate<Candidate>(CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_NON_DETERMINISTIC),
            candidate<Candidate>(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_DETERMINISTIC)});
  });
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t how,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t,
                                                      std::size_t* bytes) {
  constexpr const char* name = "cudnnGetConvolutionForwardWorkspaceSize";
  return call(name, [&] {
    static_cast<void>(context_of(handle, name));
    *bytes = Convolution{name, x, w, how, y}.workspace_bytes();
  });
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t y,
                                                             cudnnConvolutionDescriptor_t how,
                                                             cudnnFilterDescriptor_t w, cudnnConvolutionBwdFilterAlgo_t,
                                                             std::size_t* bytes) {
  constexpr const char* name = "cudnnGetConvolutionBackwardFilterWorkspaceSize";
  return call(name, [&] {
    static_cast<void>(context_of(handle, name));
    *bytes = Convolution{name, x, w, how, y}.workspace_bytes();
  });
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t how,
                                                           cudnnTensorDescriptor_t x, cudnnConvolutionBwdDataAlgo_t,
                                                           std::size_t* bytes) {
  constexpr const char* name = "cudnnGetConvolutionBackwardDataWorkspaceSize";
  return call(name, [&] {
    static_cast<void>(context_of(handle, name));
    *bytes = Convolution{name, x, w, how, y}.workspace_bytes();
  });
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_descriptor,
                                      const void* x, cudnnFilterDescriptor_t w_descriptor, const void* w,
                                      cudnnConvolutionDescriptor_t how, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, std::size_t bytes, const void* beta,
                                      cudnnTensorDescriptor_t y_descriptor, void* y) {
  constexpr const char* name = "cudnnConvolutionForward";
  return call(name, [&] {
    const Convolution of{name, x_descriptor, w_descriptor, how, y_descriptor};
    const auto* const images = static_cast<const float*>(x);
    const auto* const kernels = static_cast<const float*>(w);
    put(name, handle, alpha, beta, algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace, bytes, of,
        {images, of.images_size()}, {kernels, of.kernels_size()}, {static_cast<float*>(y), of.results_size()},
        [=](double* sums) {
          of.for_each_product([&](std::size_t result, std::size_t pixel, std::size_t tap) {
            for (unsigned c = 0; c < unsigned(of.w.channels); ++c)
              sums[result] += of.as_factor(images[pixel + c]) * of.as_factor(kernels[tap + c]);
          });
        });
  });
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             cudnnTensorDescriptor_t x_descriptor, const void* x,
                                             cudnnTensorDescriptor_t dy_descriptor, const void* dy,
                                             cudnnConvolutionDescriptor_t how,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t bytes, const void* beta, cudnnFilterDescriptor_t dw_descriptor,
                                             void* dw) {
  constexpr const char* name = "cudnnConvolutionBackwardFilter";
  return call(name, [&] {
    const Convolution of{name, x_descriptor, dw_descriptor, how, dy_descriptor};
    const auto* const images = static_cast<const float*>(x);
    const auto* const slopes = static_cast<const float*>(dy);
    put(name, handle, alpha, beta, algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, workspace, bytes, of,
        {images, of.images_size()}, {slopes, of.results_size()}, {static_cast<float*>(dw), of.kernels_size()},
        [=](double* sums) {
          of.for_each_product([&](std::size_t result, std::size_t pixel, std::size_t tap) {
            for (unsigned c = 0; c < unsigned(of.w.channels); ++c)
              sums[tap + c] += of.as_factor(images[pixel + c]) * of.as_factor(slopes[result]);
          });
        });
  });
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t w_descriptor, const void* w,
                                           cudnnTensorDescriptor_t dy_descriptor, const void* dy,
                                           cudnnConvolutionDescriptor_t how, cudnnConvolutionBwdDataAlgo_t algorithm,
                                           void* workspace, std::size_t bytes, const void* beta,
                                           cudnnTensorDescriptor_t dx_descriptor, void* dx) {
  constexpr const char* name = "cudnnConvolutionBackwardData";
  return call(name, [&] {
    const Convolution of{name, dx_descriptor, w_descriptor, how, dy_descriptor};
    const auto* const kernels = static_cast<const float*>(w);
    const auto* const slopes = static_cast<const float*>(dy);
    put(name, handle, alpha, beta, algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, workspace, bytes, of,
        {kernels, of.kernels_size()}, {slopes, of.results_size()}, {static_cast<float*>(dx), of.images_size()},
        [=](double* sums) {
          of.for_each_product([&](std::size_t result, std::size_t pixel, std::size_t tap) {
            for (unsigned c = 0; c < unsigned(of.w.channels); ++c)
              sums[pixel + c] += of.as_factor(kernels[tap + c]) * of.as_factor(slopes[result]);
          });
        });
  });
}

}  // extern "C"
