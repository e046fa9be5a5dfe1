#include "../fake_cuda/gpu.hpp"

#include <cublas_v2.h>

#include <cstddef>
#include <vector>

#include <support/fake_cudnn/machine.hpp>
#include <support/stderr_of.hpp>

using testing::refuses;

namespace {

/// A handle with the settings for a product, and matrices of 2 x 3, 3 x 4 and 2 x 4.
struct Setting {
  Setting() {
    fake_cuda::Options options;
    options.devices = 2;
    fake_cuda::restart(options);
    other = gpu::memory<float>(64, 1);
    stream = gpu::stream();
    a = gpu::memory<float>(6);
    b = gpu::memory<float>(12);
    c = gpu::memory<float>(8);
    void* const workspace = gpu::memory<std::byte>(1024);
    REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasSetWorkspace(handle, workspace, 1024) == CUBLAS_STATUS_SUCCESS);
  }
  ~Setting() {
    static_cast<void>(cudaSetDevice(0));
    static_cast<void>(cublasDestroy(handle));
  }

  cublasStatus_t multiply(const float* left, int left_stride, const float* factor, float* result) const {
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 4, 3, factor, left, left_stride, b, 3, &zero, result, 2);
  }
  cublasStatus_t multiply() const { return multiply(a, 2, &one, c); }

  cudaStream_t stream = nullptr;
  cublasHandle_t handle = nullptr;
  float *a = nullptr, *b = nullptr, *c = nullptr, *other = nullptr;
  float one = 1, zero = 0;
};

}  // namespace

TEST_CASE("a product of plain or transposed matrices is computed on the handle's stream") {
  const Setting set;
  float* const host = gpu::pinned<float>(20);
  for (int i = 0; i < 18; ++i) host[i] = static_cast<float>(i + 1);
  gpu::copy(set.a, host, 6, set.stream);
  gpu::copy(set.b, host + 6, 12, set.stream);
  // A is 1 3 5 | 2 4 6, and the first column of B is 7 8 9.
  REQUIRE(set.multiply() == CUBLAS_STATUS_SUCCESS);
  CHECK(gpu::value(set.c, set.stream) == 7 + 3 * 8 + 5 * 9);
  CHECK(gpu::value(set.c + 1, set.stream) == 2 * 7 + 4 * 8 + 6 * 9);
  // Read as columns of three rows, A is transposed: 1 2 3 | 4 5 6. The result is added to twice the old values.
  const float two = 2;
  REQUIRE(cublasSgemm(set.handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 4, 3, &set.one, set.a, 3, set.b, 3, &two, set.c, 2) ==
          CUBLAS_STATUS_SUCCESS);
  CHECK(gpu::value(set.c, set.stream) == 2 * (7 + 3 * 8 + 5 * 9) + 7 + 2 * 8 + 3 * 9);
  CHECK(fake_cudnn::live_blas_handles() == 1);
}

TEST_CASE("a matrix may be in host memory only if it is mapped for the GPU") {
  const Setting set;
  void* mapped = nullptr;
  REQUIRE(cudaHostAlloc(&mapped, 6 * sizeof(float), cudaHostAllocMapped) == cudaSuccess);
  auto* const a = static_cast<float*>(mapped);
  for (int i = 0; i < 6; ++i) a[i] = static_cast<float>(i + 1);
  float* const host = gpu::pinned<float>(12);
  for (int i = 0; i < 12; ++i) host[i] = static_cast<float>(i + 7);
  gpu::copy(set.b, host, 12, set.stream);
  REQUIRE(set.multiply(a, 2, &set.one, set.c) == CUBLAS_STATUS_SUCCESS);
  CHECK(gpu::value(set.c, set.stream) == 7 + 3 * 8 + 5 * 9);
  refuses([&] { return set.multiply(host, 2, &set.one, set.c); }, "memory of the host");
  refuses([&] { return set.multiply(a + 1, 2, &set.one, set.c); }, "memory of the host");
  CHECK(cudaFreeHost(mapped) == cudaSuccess);
}

TEST_CASE("TF32 rounds factors to 11 bits with ties to even and keeps shorter ones") {
  const Setting set;
  float* const host = gpu::pinned<float>(12);
  for (int i = 0; i < 12; ++i) host[i] = static_cast<float>(i + 7);
  gpu::copy(set.b, host, 12, set.stream);
  REQUIRE(cudaStreamSynchronize(set.stream) == cudaSuccess);
  const auto product_of = [&](float factor) {
    for (int i = 0; i < 6; ++i) host[i] = factor;
    gpu::copy(set.a, host, 6, set.stream);
    REQUIRE(set.multiply() == CUBLAS_STATUS_SUCCESS);
    return gpu::value(set.c, set.stream);
  };
  const std::size_t before = fake_cudnn::short_products();
  CHECK(product_of(1 + 0x1p-11F) == (1 + 0x1p-11F) * 24);
  CHECK(fake_cudnn::short_products() == before);
  REQUIRE(cublasSetMathMode(set.handle, CUBLAS_TF32_TENSOR_OP_MATH) == CUBLAS_STATUS_SUCCESS);
  CHECK(product_of(1 + 0x1p-11F) == 24);
  CHECK(product_of(1 + 0x3p-11F) == (1 + 0x1p-9F) * 24);
  CHECK(product_of(1 + 0x1p-10F) == (1 + 0x1p-10F) * 24);
  CHECK(fake_cudnn::short_products() == before + 3);
}

TEST_CASE("calls with undefined behavior in cuBLAS are rejected") {
  const Setting set;
  refuses([&] { return set.multiply(set.a, 1, &set.one, set.c); }, "columns of 2 elements that are 1 apart");
  refuses([&] { return set.multiply(set.a + 1, 2, &set.one, set.c); }, "matrix A is not in one allocation of a GPU");
  refuses([&] { return set.multiply(&set.one, 2, &set.one, set.c); }, "memory of the host");
  refuses([&] { return set.multiply(set.a, 2, &set.one, nullptr); }, "matrix C is not in one allocation");
  refuses([&] { return set.multiply(set.other, 2, &set.one, set.c); }, "memory of GPU 1, the handle is of GPU 0");
  refuses([&] { return set.multiply(set.a, 2, set.b, set.c); }, "alpha and beta are numbers of the host");
  refuses([&] { return set.multiply(set.a, 2, nullptr, set.c); }, "alpha and beta are numbers of the host");
  refuses(
      [&] {
        return cublasSgemm(set.handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 4, 3, &set.one, set.a, 2, set.b, 3, &set.zero,
                           set.c, 2);
      },
      "matrices without elements");
  refuses(
      [&] {
        static_cast<void>(cublasSetStream(set.handle, set.stream));
        return set.multiply();
      },
      "without a workspace");
  refuses([&] { return cublasSetWorkspace(set.handle, set.a, 1024); }, "where these are not");
  refuses([&] { return cublasSetStream(set.handle, gpu::stream(1)); }, "while GPU 1 is chosen");
  refuses(
      [&] {
        const cudaStream_t far = gpu::stream(1);
        static_cast<void>(cudaSetDevice(0));
        return cublasSetStream(set.handle, far);
      },
      "a stream of another GPU");
  refuses([&] { return cublasSetMathMode(set.handle, CUBLAS_FP32_EMULATED_BF16X9_MATH); }, "in float and TF32 only");
  refuses(
      [&] {
        static_cast<void>(cublasDestroy(set.handle));
        return set.multiply();
      },
      "a handle that does not exist, or not any more");
  refuses(
      [&] {
        cublasHandle_t fresh = nullptr;
        static_cast<void>(cublasCreate(&fresh));
        return cublasSgemm(fresh, CUBLAS_OP_N, CUBLAS_OP_N, 2, 4, 3, &set.one, set.a, 2, set.b, 3, &set.zero, set.c, 2);
      },
      "on the legacy stream");
}
