#include <dist/nn/cuda/conv2d.cuh>

#include <string_view>

#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/depthwise_conv2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>
#include <support/fake_cudnn/machine.hpp>

#include <doctest/doctest.h>

#include "nn/own_activations.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;

namespace {

// Symmetric, asymmetric and no padding, and strides that skip pixels.
using Deep =
    nn::Sequential<nn::Input<7, 6, 3>, nn::Conv2D<8, 3, nn::Relu>, nn::Conv2D<5, 2, nn::Linear, 3>, nn::Conv2D<3, 1>>;
using Padded = nn::Sequential<nn::Input<6, 7, 2>, nn::Conv2D<4, 3, nn::Relu, 1, nn::Same>,
                              nn::Conv2D<3, 2, nn::Relu, 1, nn::Same>, nn::Conv2D<2, 3, nn::Linear, 2, nn::Same>>;
// More padding before the image than windows reach after it.
using PaddedBefore = nn::Sequential<nn::Input<6, 7, 2>, nn::Conv2D<4, 5, nn::Relu, 2, nn::Pad<2>>>;
// Two groups of several filters, then one group per channel with two filters.
using Grouped =
    nn::Sequential<nn::Input<6, 7, 4>, nn::Conv2D<6, 3, nn::Relu, 1, nn::Same, nn::GlorotUniform, nn::Zeros, 2>,
                   nn::DepthwiseConv2D<2, nn::Linear, 2, nn::Same, 2>>;

}  // namespace

TEST_CASE("Conv2D by cuDNN matches the plain loops, at changing batch sizes") {
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Deep, nn::Cuda, nn::Reference>({3, 1, 0, 5});
    dist_test::check_against<Padded, nn::Cuda, nn::Reference>({2, 3});
    dist_test::check_against<PaddedBefore, nn::Cuda, nn::Reference>({2});
    dist_test::check_against<Grouped, nn::Cuda, nn::Reference>({2, 1});
  }
  CHECK(fake_cudnn::live_dnn_handles() == 0);
  CHECK(fake_cudnn::live_descriptors() == 0);
}

TEST_CASE("Conv2D on a GPU applies user-defined activations, and keeps the input of one whose gradient needs it") {
  using Own = nn::Sequential<nn::Input<5, 4, 1>, nn::Conv2D<3, 2, dist_test::Softsign>, nn::Activate<nn::Gelu>,
                             nn::Conv2D<2, 2, dist_test::Square>, nn::Flatten, nn::Dense<5, nn::Gelu>, nn::Dense<3>>;
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Own, nn::Cuda, nn::Reference>({3, 1, 0, 5});
  }
}

TEST_CASE("a failed cuDNN call throws, and the next batch is computed correctly") {
  fake_cuda::restart({});
  const auto parameters = dist_test::numbers(Padded::padded_count, 1);
  const auto batch = dist_test::numbers(2 * Padded::InputShape::elements, 2);
  for (const std::string_view call :
       {"cudnnCreate", "cudnnSetStream", "cudnnCreateTensorDescriptor", "cudnnCreateFilterDescriptor",
        "cudnnCreateConvolutionDescriptor", "cudnnSetTensor4dDescriptor", "cudnnSetFilter4dDescriptor",
        "cudnnSetConvolution2dDescriptor", "cudnnSetConvolutionGroupCount", "cudnnSetConvolutionMathType",
        "cudnnGetConvolutionForwardAlgorithm_v7", "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
        "cudnnGetConvolutionBackwardDataAlgorithm_v7", "cudnnGetConvolutionForwardWorkspaceSize",
        "cudnnGetConvolutionBackwardFilterWorkspaceSize", "cudnnGetConvolutionBackwardDataWorkspaceSize",
        "cudnnConvolutionForward", "cudnnConvolutionBackwardFilter", "cudnnConvolutionBackwardData"}) {
    CAPTURE(call);
    dist_test::Bench<nn::Cuda> bench;
    {
      nn::Workspace<Padded, nn::Cuda, float> workspace{bench.queue()};
      fake_cuda::fail_call(call, cudaErrorUnknown);
      CHECK_THROWS_AS(dist_test::pass(bench, workspace, parameters, batch), nn::CuDnnError);
      CHECK(dist_test::pass(bench, workspace, parameters, batch).outputs.size() == 2 * Padded::OutputShape::elements);
    }
    CHECK(fake_cudnn::live_descriptors() == 0);
  }
}

TEST_CASE("without a deterministic algorithm the layer throws") {
  fake_cuda::restart({});
  dist_test::Bench<nn::Cuda> bench;
  nn::Workspace<Padded, nn::Cuda, float> workspace{bench.queue()};
  fake_cuda::fail_call("cudnnGetConvolutionForwardWorkspaceSize", cudaErrorNotSupported);
  CHECK_THROWS_WITH_AS(dist_test::pass(bench, workspace, dist_test::numbers(Padded::padded_count, 1),
                                       dist_test::numbers(Padded::InputShape::elements, 2)),
                       doctest::Contains("images 6 x 7 x 2, window 3, stride 1, 4 filters"), dist::InvalidArgument);
}
