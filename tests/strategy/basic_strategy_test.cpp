#include <dist/strategy/basic_strategy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

namespace {

static_assert(dist::Strategy<dist::Default>);
// A strategy cannot be copied (spec A27).
static_assert(!std::is_copy_constructible_v<dist::Default> && !std::is_copy_assignable_v<dist::Default>);

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

/// Returns values like a run with several replicas.
template <class T>
dist::PerReplica<T> given(std::initializer_list<T> values) {
  return dist::PerReplica<T>(values.size(), [&](std::size_t i) -> T { return values.begin()[i]; });
}

}  // namespace

TEST_CASE("reduce combines numbers (spec C07)") {
  const Mirrored strategy{3};
  CHECK(strategy.reduce(dist::sum, given<std::int32_t>({3, -1, 7})) == 9);
  CHECK(strategy.reduce(dist::min, given<std::int32_t>({3, -1, 7})) == -1);
  CHECK(strategy.reduce(dist::max, given<std::int32_t>({3, -1, 7})) == 7);
  CHECK(strategy.reduce(dist::prod, given<std::int32_t>({3, -1, 7})) == -21);
  CHECK(strategy.reduce(dist::mean, given<double>({3, -1, 7})) == 3.0);
  static_assert(std::is_same_v<decltype(strategy.reduce(dist::sum, given<std::uint8_t>({1}))), std::uint8_t>);
  CHECK(strategy.reduce(dist::sum, given<std::uint8_t>({200, 50, 50})) == 44);  // modulo 256
}

TEST_CASE("reduce adds in replica order") {
  const Mirrored strategy{3};
  // 2^24 + 1 rounds back to 2^24 in single precision.
  CHECK(strategy.reduce(dist::sum, given<float>({16777216.0f, 1.0f, -16777216.0f})) == 0.0f);
  CHECK(strategy.reduce(dist::sum, given<float>({16777216.0f, -16777216.0f, 1.0f})) == 1.0f);
}

TEST_CASE("reduce takes views of tensors, without changing them") {
  const Mirrored strategy{2};
  dist::Tensor<float> first{{2}};
  dist::Tensor<float> second{{2}};
  first[0] = 1, first[1] = 2, second[0] = 10, second[1] = 20;
  const dist::Tensor<float> total =
      strategy.reduce(dist::sum, given<dist::TensorView<const float>>({first.view(), second.view()}));
  CHECK(total[0] == 11);
  CHECK(total[1] == 22);
  CHECK(first[0] == 1);
  CHECK(second[1] == 20);
}

TEST_CASE("local_results returns the values in place, in replica order (spec C15)") {
  const dist::Default strategy;
  const auto values = given<int>({4, 5, 6});
  const auto results = strategy.local_results(values);
  REQUIRE(results.size() == 3);
  CHECK(results.data() == values.begin());
  CHECK(results[2] == 6);
}

TEST_CASE("local_results of a temporary owns the values") {
  const dist::Default strategy;
  const auto several = strategy.local_results(given<std::vector<int>>({{1}, {2, 2}, {3, 3, 3}}));
  REQUIRE(several.size() == 3);
  CHECK(several[2] == std::vector<int>{3, 3, 3});
  std::size_t total = 0;
  for (const std::vector<int>& each : strategy.local_results(given<std::vector<int>>({{1}, {2, 2}})))
    total += each.size();
  CHECK(total == 3);
  const auto one = strategy.local_results(std::vector<int>{7, 8});
  REQUIRE(one.size() == 1);
  CHECK(one[0] == std::vector<int>{7, 8});
}
