#include "../fake_cuda/gpu.hpp"

#include <cudnn.h>

#include <cstddef>

#include <support/fake_cudnn/machine.hpp>
#include <support/stderr_of.hpp>

using testing::refuses;

namespace {

/// A handle, the descriptors of a convolution of one 3 x 3 x 1 image by one 2 x 2 kernel without padding, and its
/// memory.
struct Setting {
  Setting() {
    fake_cuda::Options options;
    options.devices = 2;
    fake_cuda::restart(options);
    other = gpu::memory<float>(16, 1);
    stream = gpu::stream();
    x = gpu::memory<float>(9);
    w = gpu::memory<float>(4);
    y = gpu::memory<float>(4);
    REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnCreateTensorDescriptor(&images) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnCreateTensorDescriptor(&results) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnCreateFilterDescriptor(&kernels) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnCreateConvolutionDescriptor(&how) == CUDNN_STATUS_SUCCESS);
    REQUIRE(set_images(images, 3) == CUDNN_STATUS_SUCCESS);
    REQUIRE(set_images(results, 2) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetFilter4dDescriptor(kernels, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 1, 1, 2, 2) ==
            CUDNN_STATUS_SUCCESS);
    REQUIRE(set_how(0) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetConvolutionMathType(how, CUDNN_FMA_MATH) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnGetConvolutionForwardWorkspaceSize(handle, images, kernels, how, results, algorithm, &bytes) ==
            CUDNN_STATUS_SUCCESS);
    workspace = gpu::memory<std::byte>(bytes);
  }
  ~Setting() {
    static_cast<void>(cudaSetDevice(0));
    static_cast<void>(cudnnDestroyTensorDescriptor(images));
    static_cast<void>(cudnnDestroyTensorDescriptor(results));
    static_cast<void>(cudnnDestroyFilterDescriptor(kernels));
    static_cast<void>(cudnnDestroyConvolutionDescriptor(how));
    static_cast<void>(cudnnDestroy(handle));
  }

  static cudnnStatus_t set_images(cudnnTensorDescriptor_t descriptor, int extent,
                                  cudnnTensorFormat_t format = CUDNN_TENSOR_NHWC) {
    return cudnnSetTensor4dDescriptor(descriptor, format, CUDNN_DATA_FLOAT, 1, 1, extent, extent);
  }
  cudnnStatus_t set_how(int pad, int dilation = 1) const {
    return cudnnSetConvolution2dDescriptor(how, pad, pad, 1, 1, dilation, dilation, CUDNN_CROSS_CORRELATION,
                                           CUDNN_DATA_FLOAT);
  }
  cudnnStatus_t forward(const void* of, std::size_t given, cudnnConvolutionFwdAlgo_t by = algorithm) const {
    return cudnnConvolutionForward(handle, &one, images, of, kernels, w, how, by, workspace, given, &zero, results, y);
  }
  cudnnStatus_t forward() const { return forward(x, bytes); }

  static constexpr auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  cudaStream_t stream = nullptr;
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t images = nullptr, results = nullptr;
  cudnnFilterDescriptor_t kernels = nullptr;
  cudnnConvolutionDescriptor_t how = nullptr;
  std::size_t bytes = 0;
  std::byte* workspace = nullptr;
  float *x = nullptr, *w = nullptr, *y = nullptr, *other = nullptr;
  float one = 1, zero = 0;
};

}  // namespace

TEST_CASE("a convolution and its gradients are computed on the handle's stream") {
  const Setting set;
  float* const host = gpu::pinned<float>(13);
  for (int i = 0; i < 13; ++i) host[i] = static_cast<float>(i < 9 ? i + 1 : i - 8);
  gpu::copy(set.x, host, 9, set.stream);      // 1 2 3 | 4 5 6 | 7 8 9
  gpu::copy(set.w, host + 9, 4, set.stream);  // 1 2 | 3 4
  REQUIRE(set.forward() == CUDNN_STATUS_SUCCESS);
  CHECK(gpu::value(set.y, set.stream) == 1 + 2 * 2 + 3 * 4 + 4 * 5);
  CHECK(gpu::value(set.y + 3, set.stream) == 5 + 2 * 6 + 3 * 8 + 4 * 9);
  // With the kernel as the results' gradient, the kernel's gradient equals the convolution.
  float* const dw = gpu::memory<float>(4);
  REQUIRE(cudnnConvolutionBackwardFilter(set.handle, &set.one, set.images, set.x, set.results, set.w, set.how,
                                         CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, set.workspace, set.bytes, &set.zero,
                                         set.kernels, dw) == CUDNN_STATUS_SUCCESS);
  CHECK(gpu::value(dw + 1, set.stream) == 2 + 2 * 3 + 3 * 5 + 4 * 6);
  // The middle pixel is in all windows: the last one of the first window, and so on.
  float* const dx = gpu::memory<float>(9);
  REQUIRE(cudnnConvolutionBackwardData(set.handle, &set.one, set.kernels, set.w, set.results, set.w, set.how,
                                       CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, set.workspace, set.bytes, &set.zero,
                                       set.images, dx) == CUDNN_STATUS_SUCCESS);
  CHECK(gpu::value(dx, set.stream) == 1 * 1);
  CHECK(gpu::value(dx + 4, set.stream) == 4 * 1 + 3 * 2 + 2 * 3 + 1 * 4);
}

TEST_CASE("the filters of a group use only its channels") {
  const Setting set;
  // Two pixels of two channels, and one kernel of one weight per channel.
  REQUIRE(cudnnSetTensor4dDescriptor(set.images, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, 2, 1, 2) ==
          CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnSetTensor4dDescriptor(set.results, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, 2, 1, 2) ==
          CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnSetFilter4dDescriptor(set.kernels, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 2, 1, 1, 1) ==
          CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnSetConvolutionGroupCount(set.how, 2) == CUDNN_STATUS_SUCCESS);
  std::size_t bytes = 0;
  REQUIRE(cudnnGetConvolutionForwardWorkspaceSize(set.handle, set.images, set.kernels, set.how, set.results,
                                                  Setting::algorithm, &bytes) == CUDNN_STATUS_SUCCESS);
  float* const host = gpu::pinned<float>(6);
  for (int i = 0; i < 6; ++i) host[i] = static_cast<float>(i + 1);
  gpu::copy(set.x, host, 4, set.stream);      // 1 2 | 3 4
  gpu::copy(set.w, host + 4, 2, set.stream);  // 5 | 6
  auto* const workspace = gpu::memory<std::byte>(bytes);
  REQUIRE(cudnnConvolutionForward(set.handle, &set.one, set.images, set.x, set.kernels, set.w, set.how,
                                  Setting::algorithm, workspace, bytes, &set.zero, set.results,
                                  set.y) == CUDNN_STATUS_SUCCESS);
  for (int i = 0; i < 4; ++i) CHECK(gpu::value(set.y + i, set.stream) == host[i] * (i % 2 == 0 ? 5 : 6));

  refuses([&] { return cudnnSetConvolutionGroupCount(set.how, 0); }, "with 0 groups");
  refuses(
      [&] {
        static_cast<void>(cudnnSetConvolutionGroupCount(set.how, 3));
        return set.forward();
      },
      "of 2 kernels in 3 groups");
}

TEST_CASE("calls with undefined behavior in cuDNN, and calls that the library does not make, are rejected") {
  const Setting set;
  refuses([&] { return set.forward(set.x + 1, set.bytes); }, "the first operand is not in one allocation of a GPU");
  refuses([&] { return set.forward(&set.one, set.bytes); }, "memory of the host");
  refuses([&] { return set.forward(set.other, set.bytes); }, "memory of GPU 1, the handle is of GPU 0");
  refuses([&] { return set.forward(set.x, set.bytes - 1); }, "with a workspace of");
  refuses([&] { return set.forward(set.x, set.bytes + 1); }, "the workspace is not in one allocation");
  refuses([&] { return set.forward(set.x, set.bytes, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD); },
          "gives other bits each time, or none");
  refuses(
      [&] {
        static_cast<void>(cudnnSetConvolutionMathType(set.how, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION));
        return set.forward();
      },
      "with numbers that may be shorter");
  refuses(
      [&] {
        static_cast<void>(Setting::set_images(set.results, 3));
        return set.forward();
      },
      "that do not fit each other");
  refuses([&] { return Setting::set_images(set.images, 3, CUDNN_TENSOR_NCHW); }, "with the channels innermost");
  refuses([&] { return Setting::set_images(set.images, 0); }, "with an extent of 0");
  refuses([&] { return set.set_how(0, 2); }, "without dilation");
  refuses(
      [&] {
        cudnnTensorDescriptor_t fresh = nullptr;
        static_cast<void>(cudnnCreateTensorDescriptor(&fresh));
        return cudnnConvolutionForward(set.handle, &set.one, fresh, set.x, set.kernels, set.w, set.how,
                                       Setting::algorithm, set.workspace, set.bytes, &set.zero, set.results, set.y);
      },
      "a descriptor that was not set");
  refuses(
      [&] {
        static_cast<void>(cudnnDestroyTensorDescriptor(set.images));
        return set.forward();
      },
      "a descriptor that does not exist, or not any more");
  refuses(
      [&] {
        static_cast<void>(cudnnDestroy(set.handle));
        return set.forward();
      },
      "a handle that does not exist, or not any more");
  refuses([&] { return cudnnSetStream(set.handle, gpu::stream(1)); }, "while GPU 1 is chosen");
  refuses(
      [&] {
        cudnnHandle_t fresh = nullptr;
        static_cast<void>(cudnnCreate(&fresh));
        return cudnnConvolutionForward(fresh, &set.one, set.images, set.x, set.kernels, set.w, set.how,
                                       Setting::algorithm, set.workspace, set.bytes, &set.zero, set.results, set.y);
      },
      "on the legacy stream");
}
