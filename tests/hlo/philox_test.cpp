#include <dist/hlo/philox.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <tuple>

#include <dist/core/random.hpp>
#include <hlo/run.hpp>

namespace hlo = dist::hlo;
using dist::Tensor;

TEST_CASE("a random stream in a program matches the host bit for bit, with counters and keys below and above 2^32") {
  using Index = hlo::Traced<std::uint64_t, 5>;
  const std::uint64_t seed = 0x0123'4567'89AB'CDEF, stream = 0xFEDC'BA98'7654'3210;
  const Tensor<std::uint64_t> indices{{5}, {0, 1, 0xFFFF'FFFF, 0x1'0000'0000, 0xFFFF'FFFF'FFFF'FFFF}};
  const auto [bits, singles, doubles] = testing::run<Index>(
      1,
      [&](Index index) {
        const hlo::RandomStream random{seed, stream};
        return std::tuple{random.bits(index), random.uniform(index), random.uniform<double>(index)};
      },
      indices);
  const dist::RandomStream expected{seed, stream};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(bits[i] == expected.bits(indices[i]));
    CHECK(singles[i] == expected.uniform(indices[i]));
    CHECK(doubles[i] == expected.uniform<double>(indices[i]));
  }
}
