#include <dist/hlo/scan.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <tuple>

#include <hlo/run.hpp>

namespace hlo = dist::hlo;
using dist::Tensor;
using Integer = hlo::Traced<std::int32_t>;

TEST_CASE("a loop in a program runs while its condition holds, and can use outer values") {
  const auto greatest_common_divisor = [](Integer a, Integer b) {
    return hlo::loop([](Integer, Integer rest) { return rest != 0; },
                     [](Integer x, Integer rest) {
                       return std::tuple{rest, x % rest};
                     },
                     a, b);
  };
  const auto [divisor, rest] = testing::run<Integer, Integer>(
      1, greatest_common_divisor, Tensor<std::int32_t>{{}, {252}}, Tensor<std::int32_t>{{}, {105}});
  CHECK(divisor[0] == 21);
  CHECK(rest[0] == 0);

  // The number of pairs (i, j) with j < i < n: n (n - 1) / 2, and 0 for n = 0.
  const auto count_below = [](Integer i, Integer count) {
    return std::get<1>(hlo::loop([&](Integer j, Integer) { return j < i; },
                                 [](Integer j, Integer so_far) {
                                   return std::tuple{j + 1, so_far + 1};
                                 },
                                 Integer{0}, count));
  };
  const auto count_pairs = [&](Integer n) {
    return std::get<1>(hlo::loop([&](Integer i, Integer) { return i < n; },
                                 [&](Integer i, Integer count) {
                                   return std::tuple{i + 1, count_below(i, count)};
                                 },
                                 Integer{0}, Integer{0}));
  };
  CHECK(testing::run<Integer>(1, count_pairs, Tensor<std::int32_t>{{}, {10}})[0] == 45);
  CHECK(testing::run<Integer>(1, count_pairs, Tensor<std::int32_t>{{}, {0}})[0] == 0);
}
