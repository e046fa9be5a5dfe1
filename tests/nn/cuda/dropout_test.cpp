#include <dist/nn/cuda/dropout.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/strategy/mirrored.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_normalized.hpp"

namespace nn = dist::nn;

TEST_CASE("Dropout on a GPU drops the same elements as the plain loops, from even and odd first indices") {
  fake_cuda::restart({.schedule = fake_cuda::Schedule::lazy});
  dist_test::Bench<nn::Cuda> bench;
  nn::cuda::State state{bench.queue()};
  dist::Tensor<float> random{nn::LayerRandom::state.shape};
  nn::LayerRandom::initialize(random.view(), 77);
  const dist_test::Bench<nn::Cuda>::Elements<float> seed{bench, {random.data(), random.data() + random.size()}};
  nn::Reference::State none;
  nn::reference::Dropout<1, 3, float> loops;
  nn::cuda::Dropout<1, 3, float> dropout;
  for (const std::uint64_t first : std::vector<std::uint64_t>{0, 1, 6, 7})
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{101}}) {
      CAPTURE(first);
      CAPTURE(size);
      const auto x = dist_test::converted<float>(dist_test::numbers(size, 1));
      const auto dy = dist_test::converted<float>(dist_test::numbers(size, 2));
      std::vector<float> y(size), dx(size);
      loops.forward(none, random.view(), first, {x.data(), {size}}, {y.data(), {size}});
      loops.input_gradient(none, {dy.data(), {size}}, {dx.data(), {size}});

      const dist_test::Bench<nn::Cuda>::Elements<float> values{bench, x}, slopes{bench, dy}, to{bench, x};
      const nn::cuda::View<float> result{to.span().data(), {size}};
      dropout.forward(state, nn::cuda::View<float>{seed.span().data(), random.shape()}, first,
                      {values.span().data(), {size}}, result);
      CHECK(std::ranges::equal(support::on_host(bench.queue(), to.span()), y));
      dropout.input_gradient(state, {slopes.span().data(), {size}}, result);
      CHECK(std::ranges::equal(support::on_host(bench.queue(), to.span()), dx));
      CHECK(std::ranges::equal(support::on_host(bench.queue(), seed.span()), random.elements()));
    }
}

TEST_CASE("a network with Dropout on two GPUs matches the host, in training and in inference") {
  using Net = nn::Sequential<nn::Input<3>, nn::Dropout<40>, nn::Dense<5>, nn::Dropout<20>>;
  fake_cuda::restart({.devices = 2});
  dist::Mirrored<dist::ThreadAllReduce> host{2};
  dist::Mirrored<dist::DirectAllReduce, dist::Cuda> gpus{2};
  const auto expected = dist_test::run_normalized<Net, nn::Reference, float>(host);
  const auto found = dist_test::run_normalized<Net, nn::Cuda, float>(gpus);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}
