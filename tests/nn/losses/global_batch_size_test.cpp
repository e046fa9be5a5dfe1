#include <dist/nn/losses/global_batch_size.hpp>

#include <cstdint>

#include <doctest/doctest.h>

using dist::nn::GlobalBatchSize;

namespace {
std::size_t size_of(GlobalBatchSize size) { return size.value(); }
}  // namespace

TEST_CASE("any integer is a number of examples, unless it is negative (spec P01)") {
  CHECK(size_of(12) == 12);
  CHECK(size_of(std::size_t{7}) == 7);
  CHECK(size_of(std::uint8_t{255}) == 255);
  CHECK(size_of(0) == 0);
  CHECK_THROWS_WITH_AS(
      size_of(-3),
      "The global batch size is negative (it is -3). Give the number of examples of all replicas together.",
      dist::InvalidArgument);
}
