#include <dist/nn/cuda/state.cuh>

#include <cstddef>
#include <optional>

#include <dist/core/float16.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>
#include <support/fake_cudnn/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;
namespace cudnn = dist::nn::cuda;

TEST_CASE("a replica's handle belongs to its GPU, and is destroyed with the state, also if its creation fails") {
  fake_cuda::restart({.devices = 2});
  const std::size_t device = 1;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const dist::Cuda::Queue queue = queues[0];
  const fake_cuda::Live before = fake_cuda::live();
  const auto chosen = [] {
    int now = -1;
    CHECK(cudaGetDevice(&now) == cudaSuccess);
    return now;
  };
  {
    const cudnn::State state{queue};
    CHECK(fake_cudnn::live_blas_handles() == 1);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    static_cast<void>(state.enter());
    CHECK(chosen() == 1);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);  // the handle is still destroyed on its own GPU
  }
  CHECK(fake_cudnn::live_blas_handles() == 0);
  for (const char* const call : {"cublasCreate", "cublasSetStream", "cublasSetWorkspace", "cublasSetMathMode"}) {
    CAPTURE(call);
    queue.enter();
    fake_cuda::fail_call(call, cudaErrorMemoryAllocation);
    std::optional<cudnn::State> state;
    CHECK_THROWS_WITH_AS(state.emplace(queue), doctest::Contains(call), nn::CuBlasError);
    CHECK(fake_cudnn::live_blas_handles() == 0);
    CHECK(fake_cuda::live() == before);
  }
}

TEST_CASE("16-bit factors are multiplied as TF32, which keeps them exact, and float factors are not") {
  using Net = nn::Sequential<nn::Input<5, 4, 2>, nn::Conv2D<3, 2, nn::Relu>, nn::Flatten, nn::Dense<4>>;
  fake_cuda::restart({});
  const auto parameters = dist_test::numbers(Net::padded_count, 1);
  const auto batch = dist_test::numbers(3 * Net::InputShape::elements, 2);
  const auto short_products = [&]<class Backend>(Backend) {
    const std::size_t before = fake_cudnn::short_products();
    dist_test::Bench<Backend> bench;
    nn::Workspace<Net, Backend, float> workspace{bench.queue()};
    static_cast<void>(dist_test::pass(bench, workspace, parameters, batch));
    return fake_cudnn::short_products() - before;
  };
  CHECK(short_products(nn::Cuda{}) == 0);
  // The output and the kernel gradient of both layers, and the input gradient of the second layer.
  CHECK(short_products(nn::MixedPrecision<nn::Cuda, dist::BFloat16>{}) == 5);
  CHECK(short_products(nn::MixedPrecision<nn::Cuda, dist::Float16>{}) == 5);
}

TEST_CASE("the cuDNN handle is created on first use, and a workspace grows") {
  fake_cuda::restart({});
  const std::size_t device = 0;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const fake_cuda::Live before = fake_cuda::live();
  {
    cudnn::State state{queues[0]};
    CHECK(fake_cudnn::live_dnn_handles() == 0);
    for (const char* const call : {"cudnnCreate", "cudnnSetStream"}) {
      fake_cuda::fail_call(call, cudaErrorUnknown);
      CHECK_THROWS_WITH_AS(state.dnn(), doctest::Contains(call), nn::CuDnnError);
      CHECK(fake_cudnn::live_dnn_handles() == 0);
    }
    const cudnnHandle_t handle = state.dnn();
    CHECK(state.dnn() == handle);
    CHECK(fake_cudnn::live_dnn_handles() == 1);
    std::byte* const small = state.workspace(1000);
    CHECK(state.workspace(500) == small);
    const std::size_t allocations = fake_cuda::live().device_allocations;
    CHECK(state.workspace(2000) != nullptr);
    CHECK(fake_cuda::live().device_allocations == allocations);
    CHECK_THROWS_AS(state.workspace(std::size_t{1} << 40), dist::OutOfMemory);
    CHECK(state.workspace(1000) != nullptr);
  }
  CHECK(fake_cudnn::live_dnn_handles() == 0);
  CHECK(fake_cuda::live() == before);
}
