// A strategy with one replica on a GPU is bitwise equal to the same program on the host.
// GPUs: 1 2
#include <dist/device/cuda/device.cuh>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/one_device.hpp>
#include <dist/variable/policies.hpp>

namespace {

constexpr std::size_t count = 1003;

struct Step {
  const float* gradient;
  float* weight;
  DIST_HD void operator()(std::size_t i) const { weight[i] -= 0.125F * gradient[i]; }
};
struct GradientOf {
  const float* weight;
  float* gradient;
  DIST_HD void operator()(std::size_t i) const { gradient[i] = weight[i] - static_cast<float>(i % 17); }
};
struct LargestOf {
  const float* weight;
  DIST_HD float operator()(std::size_t i) const { return weight[i]; }
};

template <class T>
std::vector<T> values_of(const dist::Tensor<T>& tensor) {
  return {tensor.data(), tensor.data() + tensor.size()};
}

/// Returns the weights and their maximum after some steps of descent, with an assignment in between.
template <class Strategy>
std::pair<std::vector<float>, float> train(Strategy& strategy) {
  dist::Tensor<float> initial{{count}};
  for (std::size_t i = 0; i < count; ++i) initial[i] = 1.0F / static_cast<float>(i + 1);
  auto weights = strategy.template variable<float>({count}, initial, "weights");
  auto gradients = strategy.template buffer<float>({count}, "gradients");
  float largest = 0;
  for (int step = 0; step < 5; ++step) {
    strategy.run([&](auto& replica) {
      const auto weight = weights.component(replica), gradient = gradients.component(replica);
      replica.for_each(count, GradientOf{weight.data(), gradient.data()});
      replica.for_each(count, Step{gradient.data(), weight.data()});
      largest = replica.transform_reduce(dist::max, {0, count}, LargestOf{weight.data()});
    });
    if (step == 2) weights.assign_add(strategy.scope(), 0.5F);
  }
  return {values_of(weights.whole(strategy.scope())), largest};
}

}  // namespace

TEST_CASE("steps on a GPU are bitwise equal to steps on the host") {
  dist::OneDevice<dist::Cpu> cpu;
  dist::OneDevice<dist::Cuda> gpu;
  CHECK(gpu.describe() == "OneDevice<Cuda>: 1 replica on /gpu:0");
  const auto [expected, expected_largest] = train(cpu);
  const auto [weights, largest] = train(gpu);
  CHECK(std::memcmp(weights.data(), expected.data(), count * sizeof(float)) == 0);
  CHECK(largest == expected_largest);
}

TEST_CASE("variables on a GPU are read and written inside and outside replica functions") {
  dist::OneDevice<dist::Cuda> strategy;
  auto numbers = strategy.variable<float>({2, 2}, 1.5F, "numbers");
  CHECK(values_of(numbers.read(strategy.scope())) == std::vector<float>{1.5F, 1.5F, 1.5F, 1.5F});
  dist::Tensor<float> values{{2, 2}};
  for (std::size_t i = 0; i < 4; ++i) values[i] = static_cast<float>(i);
  numbers.assign(strategy.scope(), values);
  strategy.run([&](auto& replica) { numbers.assign_sub(replica, 1.0F); });
  CHECK(values_of(numbers.read(strategy.scope())) == std::vector<float>{-1, 0, 1, 2});

  auto total = strategy.variable<int, dist::OnRead, dist::Sum>({}, 3, "count");
  strategy.run([&](auto& replica) {
    total.assign_add(replica, 4);
    CHECK(total.value(replica) == 7);
  });
  CHECK(total.value(strategy.scope()) == 7);

  const auto whole = numbers.whole(strategy.scope());
  numbers.assign(strategy.scope(), 0.0F);
  numbers.restore(strategy.scope(), whole.view());
  CHECK(values_of(numbers.whole(strategy.scope())) == std::vector<float>{-1, 0, 1, 2});
  CHECK_THROWS_AS(numbers.assign(strategy.scope(), dist::Tensor<float>{{3}}), dist::ShapeMismatch);
  CHECK_THROWS_AS(static_cast<void>(strategy.variable<double>({std::size_t{1} << 45})), dist::OutOfMemory);
}
