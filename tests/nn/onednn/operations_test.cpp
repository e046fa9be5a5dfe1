#include <dist/nn/onednn/operations.hpp>

#include <array>
#include <string>

#include <dist/nn/onednn/api.hpp>

#include <doctest/doctest.h>

namespace onednn = dist::nn::onednn;

namespace {
const onednn::DenseSizes sizes{3, 2, true, [] { return std::string("3 inputs, 2 units"); }};
constexpr std::array<float, 6> kernel{1, 2, 3, 4, 5, 6};
constexpr std::array<float, 2> bias{10, 20};
}  // namespace

TEST_CASE("a product is compiled once per number of rows") {
  onednn::State state;
  onednn::Compiled compiled;
  constexpr std::array<float, 6> x{1, 0, 1, 0, 1, 0};
  std::array<float, 4> y{};
  onednn::multiply(state, compiled, sizes, 2, x.data(), kernel.data(), bias.data(), y.data());
  CHECK(y == std::array<float, 4>{16, 28, 13, 24});
  const auto* const plans = compiled.get();
  onednn::multiply(state, compiled, sizes, 1, x.data() + 3, kernel.data(), bias.data(), y.data());
  CHECK(y == std::array<float, 4>{13, 24, 13, 24});
  CHECK(compiled.get() == plans);
}

TEST_CASE("entering limits oneDNN to one thread, and leaving restores the host's OpenMP setting") {
  onednn::State state;
  omp_set_num_threads(2);
  {
    const auto entered = state.enter();
    CHECK(omp_get_max_threads() == 1);
  }
  CHECK(omp_get_max_threads() == 2);
}
