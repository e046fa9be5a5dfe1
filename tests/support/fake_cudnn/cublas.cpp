// The cuBLAS functions that the library calls. A handle belongs to the GPU that was selected at its creation.
#include <cublas_v2.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "library.hpp"
#include "machine.hpp"

struct cublasContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  bool has_workspace = false;
  bool is_short = false;  // factors are TF32
};

namespace {

using fake_cuda::refuse;

std::set<cublasHandle_t>& live() {
  static std::set<cublasHandle_t> all;
  return all;
}

template <class Body>
cublasStatus_t call(std::string_view function, Body&& body) {
  return fake_cudnn::call(function, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_NOT_SUPPORTED,
                          CUBLAS_STATUS_EXECUTION_FAILED, body);
}

cublasContext& context_of(cublasHandle_t handle, std::string_view function) {
  if (!live().contains(handle)) refuse(std::string(function) + " of a handle that does not exist, or not any more");
  fake_cudnn::require_chosen(function, handle->device);
  return *handle;
}

struct Matrix {
  const float* elements;
  int rows, columns, stride;
  [[nodiscard]] std::size_t bytes() const {
    return (static_cast<std::size_t>(stride) * static_cast<std::size_t>(columns - 1) + static_cast<std::size_t>(rows)) *
           sizeof(float);
  }
  [[nodiscard]] std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(column) * static_cast<std::size_t>(stride) + static_cast<std::size_t>(row);
  }
};

void require_matrix(const Matrix& matrix, int device, std::string_view name) {
  const std::string which = "cublasSgemm: matrix " + std::string(name);
  if (matrix.stride < matrix.rows)
    refuse(which + " has columns of " + std::to_string(matrix.rows) + " elements that are " +
           std::to_string(matrix.stride) + " apart");
  fake_cudnn::require_memory(which, matrix.elements, matrix.bytes(), device);
}

}  // namespace

std::size_t fake_cudnn::short_products() {
  std::size_t count = 0;
  static_cast<void>(::call("short_products", [&] { count = count_of_short_products(); }));
  return count;
}
std::size_t fake_cudnn::live_blas_handles() {
  std::size_t count = 0;
  static_cast<void>(::call("live_blas_handles", [&] { count = live().size(); }));
  return count;
}

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return call("cublasCreate", [&] {
    auto made = std::make_unique<cublasContext>();
    made->device = fake_cuda::chosen_device();
    live().insert(*handle = made.release());
  });
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return call("cublasDestroy", [&] {
    const std::unique_ptr<cublasContext> owned{&context_of(handle, "cublasDestroy")};
    live().erase(handle);
  });
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return call("cublasSetStream", [&] {
    cublasContext& context = context_of(handle, "cublasSetStream");
    if (fake_cuda::handles().stream(stream, "cublasSetStream").device != context.device)
      refuse("cublasSetStream with a stream of another GPU than the handle's");
    context.stream = stream;
    context.has_workspace = false;  // like cuBLAS
  });
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  return call("cublasSetWorkspace", [&] {
    cublasContext& context = context_of(handle, "cublasSetWorkspace");
    if (!fake_cuda::is_device_memory(workspace, bytes))
      refuse("cublasSetWorkspace with " + std::to_string(bytes) + " bytes of " + fake_cuda::place_of(workspace) +
             ", where these are not");
    context.has_workspace = true;
  });
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return call("cublasSetMathMode", [&] {
    cublasContext& context = context_of(handle, "cublasSetMathMode");
    if (mode != CUBLAS_PEDANTIC_MATH && mode != CUBLAS_DEFAULT_MATH && mode != CUBLAS_TF32_TENSOR_OP_MATH)
      refuse("cublasSetMathMode: the fake computes in float and TF32 only");
    context.is_short = mode == CUBLAS_TF32_TENSOR_OP_MATH;
  });
}
const char* cublasGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED" : "CUBLAS_STATUS_EXECUTION_FAILED";
}
const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_ALLOC_FAILED ? "the resource allocation failed"
                                              : "the function failed to launch on the GPU";
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
  return call("cublasSgemm", [&] {
    const cublasContext& context = context_of(handle, "cublasSgemm");
    if (context.stream == nullptr) refuse("cublasSgemm on the legacy stream, which waits for all others");
    if (!context.has_workspace) refuse("cublasSgemm without a workspace, which allocates: give cublasSetWorkspace one");
    if (m <= 0 || n <= 0 || k <= 0) refuse("cublasSgemm of matrices without elements");
    fake_cudnn::require_factors("cublasSgemm", alpha, beta);
    const bool a_flipped = of_a != CUBLAS_OP_N, b_flipped = of_b != CUBLAS_OP_N;
    const Matrix left{a, a_flipped ? k : m, a_flipped ? m : k, lda};
    const Matrix right{b, b_flipped ? n : k, b_flipped ? k : n, ldb};
    const Matrix result{c, m, n, ldc};
    require_matrix(left, context.device, "A");
    require_matrix(right, context.device, "B");
    require_matrix(result, context.device, "C");
    CUstream_st& stream = fake_cuda::handles().stream(context.stream, "cublasSgemm");
    fake_cuda::OperationRef operation = fake_cuda::next_operation(stream, "cublasSgemm");
    operation->addresses = {a, b, c};
    if (context.is_short) ++fake_cudnn::count_of_short_products();
    operation->work =
        std::make_shared<const std::function<void()>>([=, is_short = context.is_short, by = *alpha, keeps = *beta] {
          fake_cuda::reads(left.elements, left.bytes());
          fake_cuda::reads(right.elements, right.bytes());
          fake_cuda::writes(c, result.bytes());
          const fake_cuda::UnseenAccesses unseen;
          const auto as_factor = [=](float of) { return static_cast<double>(fake_cudnn::as_multiplied(of, is_short)); };
          // Processes the factors as rows of m and n numbers, so that the compiler vectorises the sums.
          std::vector<double> lines(static_cast<std::size_t>(k) * static_cast<std::size_t>(m));
          std::vector<double> sums(static_cast<std::size_t>(m));
          for (int i = 0; i < k; ++i)
            for (int row = 0; row < m; ++row)
              lines[static_cast<std::size_t>(i) * sums.size() + static_cast<std::size_t>(row)] =
                  as_factor(a[a_flipped ? left.at(i, row) : left.at(row, i)]);
          for (int column = 0; column < n; ++column) {
            std::fill(sums.begin(), sums.end(), 0.0);
            for (int i = 0; i < k; ++i) {
              const double factor = as_factor(b[b_flipped ? right.at(column, i) : right.at(i, column)]);
              const double* const line = &lines[static_cast<std::size_t>(i) * sums.size()];
              for (std::size_t row = 0; row < sums.size(); ++row) sums[row] += line[row] * factor;
            }
            for (int row = 0; row < m; ++row) {
              float& to = c[result.at(row, column)];
              to = by * static_cast<float>(sums[static_cast<std::size_t>(row)]) +
                   (keeps == 0 ? 0 : keeps * to);  // unused if beta is 0
            }
          }
        });
    fake_cuda::put_on(stream, std::move(operation));
  });
}

}  // extern "C"
