#include <dist/hlo/program.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dist/hlo/collectives.hpp>
#include <hlo/arrays.hpp>
#include <support/what_throws.hpp>

namespace hlo = dist::hlo;
using dist::Tensor;
using dist::pjrt::Client;
using testing::Floats;

namespace {

Client two_cpus() { return Client{{.values = {{"cpu_device_count", std::int64_t{2}}}}}; }

}  // namespace

TEST_CASE("a traced function runs on all replicas, and each has its results") {
  const Client client = two_cpus();
  const hlo::Program program{client, hlo::trace<Floats<2>, Floats<>>(2, [](auto x, auto rate) {
                               return std::tuple{rate * x, hlo::reduce(dist::sum, hlo::all_reduce(dist::sum, x))};
                             })};
  const std::vector<Tensor<float>> parts{{{2}, {1, 2}}, {{2}, {10, 20}}};
  const hlo::PerReplica<Floats<2>> x{client, parts};
  const hlo::PerReplica<Floats<>> rate{client, 2, Tensor<float>{{}, {0.5F}}};
  const auto [scaled, sum] = program(x, rate);
  CHECK(scaled.on(0) == Tensor<float>{{2}, {0.5F, 1}});
  CHECK(scaled.on(1) == Tensor<float>{{2}, {5, 10}});
  CHECK(sum.on(0) == Tensor<float>{{}, {33}});
  CHECK(sum.on(1) == Tensor<float>{{}, {33}});
  CHECK_THROWS_AS(static_cast<void>(sum.on(2)), dist::InvalidArgument);
}

TEST_CASE("a donated argument becomes the result of its type, call after call") {
  const Client client = two_cpus();
  const hlo::Program step{client, hlo::trace<Floats<3>, hlo::Donated<Floats<3>>, hlo::Donated<Floats<>>>(
                                      2, [](auto gradient, auto weights, auto count) {
                                        return std::tuple{count + 1, weights - hlo::all_reduce(dist::mean, gradient)};
                                      })};
  const std::vector<Tensor<float>> parts{{{3}, {2, 4, 6}}, {{3}, {0, 0, 2}}};
  const hlo::PerReplica<Floats<3>> gradient{client, parts};
  hlo::PerReplica<Floats<3>> weights{client, 2, Tensor<float>{{3}, {1, 1, 1}}};
  hlo::PerReplica<Floats<>> count{client, 2, Tensor<float>{{}, {0}}};
  for (int i = 0; i < 3; ++i) {
    auto [next_count, next_weights] = step(gradient, std::move(weights), std::move(count));
    CHECK(weights.buffer(0).is_donated());
    CHECK(count.buffer(1).is_donated());
    CHECK_FALSE(gradient.buffer(0).is_donated());
    weights = std::move(next_weights);
    count = std::move(next_count);
  }
  CHECK(count.on(1) == Tensor<float>{{}, {3}});
  CHECK(weights.on(0) == Tensor<float>{{3}, {-2, -5, -11}});
  CHECK(weights.on(1) == weights.on(0));
}

TEST_CASE("arguments of another shape or number of replicas are refused") {
  const Client client = two_cpus();
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          hlo::PerReplica<Floats<2>>{client, 2, Tensor<float>{{3}, {1, 2, 3}}};
        }).find("its shape is [3], and the program's [2]") != std::string::npos);
  const hlo::Program program{client, hlo::trace<Floats<2>>(2, [](auto x) { return x + x; })};
  const hlo::PerReplica<Floats<2>> x{client, 1, Tensor<float>{{2}, {1, 2}}};
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(program(x));
        }).find("it has 2 replicas, and an argument has parts for 1") != std::string::npos);
}
