#include <dist/nn/cuda/descriptor.hpp>

#include <utility>

#include <support/fake_cuda/machine.hpp>
#include <support/fake_cudnn/machine.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;
namespace cudnn = dist::nn::cuda;

TEST_CASE("a descriptor is destroyed exactly once, after moves and after failures") {
  fake_cuda::restart({});
  {
    cudnn::TensorDescriptor first = cudnn::images(2, 5, 4, 3);
    cudnn::TensorDescriptor second{std::move(first)};
    CHECK(first.get() == nullptr);
    CHECK(second.get() != nullptr);
    first = std::move(second);
    const cudnn::FilterDescriptor kernels = cudnn::kernels(8, 3, 3, 3);
    const cudnn::ConvolutionDescriptor correlation = cudnn::correlation(1, 0, 2, 1, CUDNN_FMA_MATH);
    CHECK(fake_cudnn::live_descriptors() == 3);
    fake_cuda::fail_call("cudnnSetConvolutionMathType", cudaErrorMemoryAllocation);
    CHECK_THROWS_WITH_AS(cudnn::correlation(1, 0, 2, 1, CUDNN_FMA_MATH),
                         doctest::Contains("Make the model or the batch smaller"), nn::CuDnnError);
    CHECK(fake_cudnn::live_descriptors() == 3);
  }
  CHECK(fake_cudnn::live_descriptors() == 0);
}
