#include <dist/nn/cuda/embedding.cuh>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/one_device.hpp>
#include <dist/strategy/step_graph.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("Embedding on GPUs matches the plain loops, with unique, repeated and unused ids") {
  using Net = nn::Sequential<nn::Input<4>, nn::Embedding<9, 3>, nn::Flatten, nn::Dense<2>>;
  const auto parameters = dist_test::numbers(Net::padded_count, 1);
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::Bench<nn::Cuda> bench;
    nn::Workspace<Net, nn::Cuda, float> workspace{bench.queue()};
    nn::Workspace<Net, nn::Reference, double> loops;
    for (const std::size_t rows : {std::size_t{5}, std::size_t{1}, std::size_t{0}, std::size_t{20}}) {
      CAPTURE(rows);
      std::vector<double> ids(4 * rows);
      for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<double>(i % 3 == 0 ? 2 : i * 5 % 8) + 0.5;
      const auto mine = dist_test::pass(bench, workspace, parameters, ids);
      const auto expected = dist_test::pass(loops, parameters, ids);
      CHECK(dist_test::difference(mine.outputs, expected.outputs) < 1e-5);
      CHECK(dist_test::difference(mine.gradients, expected.gradients) < 1e-5);
    }
  }
}

TEST_CASE("an id out of range gives NaN and no gradient, and a later batch reports it") {
  using Net = nn::Sequential<nn::Input<3>, nn::Embedding<4, 2>>;
  fake_cuda::restart({.schedule = fake_cuda::Schedule::lazy});
  const auto parameters = dist_test::numbers(Net::padded_count, 1);
  for (const double unknown : {4.0, -1.0, std::nan("")}) {
    CAPTURE(unknown);
    dist_test::Bench<nn::Cuda> bench;
    nn::Workspace<Net, nn::Cuda, float> workspace{bench.queue()};
    const auto found = dist_test::pass(bench, workspace, parameters, {1, 3, 1, 1, unknown, unknown});
    for (std::size_t i = 0; i < found.outputs.size(); ++i) CHECK(std::isnan(found.outputs[i]) == (i >= 8));
    for (std::size_t i = 0; i < found.gradients.size(); ++i)  // words 1 and 3
      CHECK((std::isfinite(found.gradients[i]) && (found.gradients[i] == 0) == (i / 2 % 2 == 0)));
    const std::vector<double> known{1, 3, 1};
    CHECK_THROWS_WITH_AS(dist_test::pass(bench, workspace, parameters, known),
                         doctest::Contains("element 4 of the batch is"), dist::InvalidArgument);
    CHECK(std::isfinite(dist_test::pass(bench, workspace, parameters, known).loss));
  }
}

TEST_CASE("the table's gradient never writes past the table, whatever the ids") {
  fake_cuda::restart({});
  dist_test::Bench<nn::Cuda> bench;
  nn::cuda::State state{bench.queue()};
  const dist_test::Bench<nn::Cuda>::Elements<float> ids{bench, {4, 1, 4, 100}}, slopes{bench, std::vector<float>(8, 1)},
      table{bench, std::vector<float>(10, 99)};
  nn::cuda::Embedding<4, 2, float>{}.add_table_gradient(state, {ids.span().data(), {4}}, {slopes.span().data(), {4, 2}},
                                                        {table.span().data(), {4, 2}});
  CHECK(std::ranges::equal(support::on_host(bench.queue(), table.span()),
                           std::array{99, 99, 100, 100, 99, 99, 99, 99, 99, 99}));
}

TEST_CASE("steps run as graphs also report an id out of range") {
  using Net = nn::Sequential<nn::Input<3>, nn::Embedding<4, 2>>;
  fake_cuda::restart({.schedule = fake_cuda::Schedule::lazy});
  dist::OneDevice<dist::Cuda> gpu;
  nn::Network<Net, nn::Cuda> net{gpu};
  dist::StepGraph graph{gpu};
  const auto batch = gpu.buffer<float>(dist::Shape{1, 3}, "ids");
  const auto queue = gpu.scope().queue(0);
  const auto set = [&](float last) {
    queue.copy(std::array{3.0F, 1.0F, last}, batch.component(gpu.scope(), 0));
    queue.wait();
  };
  const auto step = [&](auto& replica) {
    const auto y = net.forward(replica, {batch.component(replica).data(), batch.shape()});
    replica.queue().fill(y.gradient.elements(), 1.0F);
    net.backward(replica, 0);
  };
  set(1);
  gpu.run(step);
  for (int again = 0; again < 3; ++again) graph.run(step);
  set(9);
  graph.run(step);
  queue.wait();
  set(2);
  CHECK_THROWS_WITH_AS(graph.run(step), doctest::Contains("element 2 of the batch is 9"), dist::InvalidArgument);
  graph.run(step);
  gpu.run([&](auto& replica) {
    const auto found = support::on_host(queue, std::as_const(net).gradients().component(replica));
    for (std::size_t i = 0; i < 8; ++i) CHECK(found[i] == (i < 2 ? 0.0F : 1.0F));  // words 1, 2 and 3 occur once each
  });
}
