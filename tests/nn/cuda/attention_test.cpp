#include <dist/nn/cuda/attention.cuh>

#include <cmath>
#include <limits>

#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("attention on GPUs matches the plain loops, to all elements and to the past") {
  using Net = nn::Sequential<nn::Input<5, 4>, nn::MultiHeadAttention<2, 3>,
                             nn::MultiHeadAttention<3, 2, nn::AttendToPast>, nn::Flatten, nn::Dense<2>>;
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Net, nn::Cuda, nn::Reference>({3, 1, 0, 4});
  }
}

TEST_CASE("elements outside the reach of attention have no effect, not even a NaN, and no gradient") {
  using Geometry = nn::AttentionGeometry<2, 1, 1, nn::AttendToPast>;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  fake_cuda::restart({});
  dist_test::Bench<nn::Cuda> bench;
  nn::cuda::State state{bench.queue()};
  using Elements = dist_test::Bench<nn::Cuda>::Elements<float>;
  const Elements queries{bench, {1, 2}}, keys{bench, {3, nan}}, values{bench, {5, nan}}, weights{bench, {0, 0, 0, 0}},
      outputs{bench, {0, 0}};
  const auto view = [](const Elements& of) { return nn::cuda::View<float>{of.span().data(), {2, 1}}; };
  const nn::cuda::View<float> of_pairs{weights.span().data(), {1, 1, 2, 2}};
  nn::cuda::Attention<Geometry, float> attention;
  attention.forward(state, view(queries), view(keys), view(values), of_pairs, view(outputs));
  const auto found = support::on_host(bench.queue(), outputs.span());
  CHECK(found[0] == 5);
  CHECK(std::isnan(found[1]));

  // The first element attends only to itself, so only the second element's gradient reaches the second key and value.
  const Elements finite{bench, {3, 4}}, slopes{bench, {nan, 7}}, dq{bench, {0, 0}}, dk{bench, {0, 0}},
      dv{bench, {0, 0}};
  attention.forward(state, view(queries), view(finite), view(finite), of_pairs, view(outputs));
  attention.input_gradients(state, view(queries), view(finite), view(finite), of_pairs, view(slopes), view(dq),
                            view(dk), view(dv));
  for (const Elements* const of : {&dk, &dv}) {
    const auto gradient = support::on_host(bench.queue(), of->span());
    CHECK(std::isnan(gradient[0]));
    CHECK(std::isfinite(gradient[1]));
  }
}
