#include <dist/nn/hlo/dropout.hpp>

#include <doctest/doctest.h>

#include <dist/nn/sequential.hpp>
#include <nn/hlo/check_lowering.hpp>

namespace nn = dist::nn;

TEST_CASE("Dropout drops in programs what it drops on the host, at each step, of the rows of all replicas") {
  // A draw is for two elements: rows of an odd number share one.
  dist_test::check_emitted<nn::Sequential<nn::Input<7>, nn::Dropout<25>, nn::Dropout<1, 3>>>({{3, 2}, {1, 3}, {0, 2}});
  dist_test::check_emitted<nn::Sequential<nn::Input<2, 3>, nn::Dropout<50>>>({{3}});
}

TEST_CASE("the number of steps goes on beyond 16 bits") {
  using State = dist::hlo::Traced<float, 6>;
  const auto [step, states] = testing::run<State>(
      1,
      [](State state) {
        const dist::hlo::RandomStream random = nn::detail::next_random(state);
        return std::tuple{random.bits(dist::hlo::Traced<std::uint64_t>{5}), state};
      },
      dist::Tensor<float>{{6}, {0xCDEF, 0x89AB, 0x4567, 0x0123, 0xFFFF, 2}});
  CHECK(step[0] == dist::RandomStream{0x0123'4567'89AB'CDEF, 0x2FFFF}.bits(5));
  CHECK(states == dist::Tensor<float>{{6}, {0xCDEF, 0x89AB, 0x4567, 0x0123, 0, 3}});
}
