#include <dist/hlo/program.hpp>

#include <doctest/doctest.h>

#include <hlo/run.hpp>
#include <optional>
#include <string>
#include <support/what_throws.hpp>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/future.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/pjrt/buffer.hpp>
#include <dist/hlo/collectives.hpp>

#include "run.hpp"

namespace hlo = dist::hlo;
using dist::Tensor;
using dist::pjrt::Client;
using testing::Floats;

TEST_CASE("a traced function runs on all replicas, and each has its own results") {
  const Client client = testing::cpus(2);
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

TEST_CASE("a donated argument becomes the result of its type in repeated calls") {
  const Client client = testing::cpus(2);
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

TEST_CASE("arguments of another shape or number of replicas are rejected") {
  const Client client = testing::cpus(2);
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          hlo::PerReplica<Floats<2>>{client, 2, Tensor<float>{{3}, {1, 2, 3}}};
        }).find("its shape is [3], but the program's shape is [2]") != std::string::npos);
  const hlo::Program program{client, hlo::trace<Floats<2>>(2, [](auto x) { return x + x; })};
  const hlo::PerReplica<Floats<2>> x{client, 1, Tensor<float>{{2}, {1, 2}}};
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(program(x));
        }).find("it has 2 replicas, but an argument has parts for 1") != std::string::npos);
}

TEST_CASE("batch arrays may have any number of rows, but a program accepts only the number of its trace") {
  const Client client = testing::cpus(2);
  using Rows = Floats<hlo::batch, 2>;
  const hlo::Program program{client, hlo::trace<Rows, Floats<2>>(2, 3, [](auto x, auto weights) {
                               const Rows products = x * hlo::broadcast<Rows, 1>(weights);
                               return std::tuple{products,
                                                 hlo::reduce<0>(dist::sum, hlo::all_reduce(dist::sum, products)),
                                                 hlo::reshape<2, hlo::batch>(x), hlo::contract<0, 0>(x, x)};
                             })};
  const std::vector<Tensor<float>> parts{{{3, 2}, {1, 2, 3, 4, 5, 6}}, {{3, 2}, {7, 8, 9, 10, 11, 12}}};
  const hlo::PerReplica<Rows> x{client, parts};
  CHECK(x.rows() == 3);
  const hlo::PerReplica<Floats<2>> weights{client, 2, Tensor<float>{{2}, {1, -1}}};
  CHECK(weights.rows() == std::nullopt);
  const auto [products, sums, reshaped, squares] = program(x, weights);
  CHECK(products.rows() == 3);
  CHECK(products.on(1) == Tensor<float>{{3, 2}, {7, -8, 9, -10, 11, -12}});
  CHECK(sums.on(0) == Tensor<float>{{2}, {36, -42}});
  CHECK(reshaped.on(0) == Tensor<float>{{2, 3}, {1, 2, 3, 4, 5, 6}});
  CHECK(squares.on(0) == Tensor<float>{{2, 2}, {35, 44, 44, 56}});

  const hlo::PerReplica<Rows> others{client, 2, Tensor<float>{{2, 2}, {1, 2, 3, 4}}};
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          static_cast<void>(program(others, weights));
        }).find("it is traced for batches of 3 rows, but an argument has 2") != std::string::npos);
  const std::vector<Tensor<float>> unequal{parts[0], {{2, 2}, {1, 2, 3, 4}}};
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          hlo::PerReplica<Rows>{client, unequal};
        }).find("The array for replica 1 does not fit (its shape is [2, 2], but the program's shape is [3, 2])") == 0);
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          hlo::PerReplica<Rows>{client, 2, Tensor<float>{{2}, {1, 2}}};
        }).find("but the program's shape is [rows, 2]") != std::string::npos);
}

TEST_CASE("XLA's compilation errors name the line of C++") {
  const int line = __LINE__ + 1;
  const auto wrong = hlo::trace<Floats<2>, Floats<3>>(1, [](auto x, auto y) {
    const hlo::Scope scope{"sum"};
    return Floats<2>{hlo::untyped::add(x.value(), y.value())};
  });
  const std::string refusal = support::what_throws<dist::ProgramRefused>([&] {
    const hlo::Program program{testing::cpus(1), wrong};
  });
  CHECK(refusal.find(dist::concat("loc(\"program/sum at ", __FILE__, ":", line, "\"): 'stablehlo.add' op")) !=
        std::string::npos);
}

using Number = dist::hlo::PendingNumber<float>;

static_assert(dist::Future<Number>);
static_assert(std::is_same_v<Number::Reduced, float>);

TEST_CASE("a PendingNumber waits for its value, and can be read repeatedly") {
  const Number number{dist::pjrt::upload(testing::cpus(1), 0, dist::Tensor<float>{dist::Shape{}, {2.5F}})};
  number.wait();
  CHECK(number.is_done());
  const Number copy = number;
  CHECK(copy.value() == 2.5F);
  CHECK(2 * number == 5);
}
