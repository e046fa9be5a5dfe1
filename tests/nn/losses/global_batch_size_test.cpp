#include <dist/nn/losses/global_batch_size.hpp>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "support/stderr_of.hpp"

using dist::nn::GlobalBatchSize;
using dist::nn::detail::require_global_batch_size;

namespace {
std::size_t size_of(GlobalBatchSize size) { return size.value(); }
}  // namespace

TEST_CASE("a global batch size is any integer of 0 or more (spec P01)") {
  CHECK(size_of(12) == 12);
  CHECK(size_of(std::size_t{7}) == 7);
  CHECK(size_of(std::uint8_t{255}) == 255);
  CHECK(size_of(0) == 0);
  CHECK_THROWS_WITH_AS(
      size_of(-3),
      "The global batch size is negative (it is -3). Give the number of examples of all replicas together.",
      dist::InvalidArgument);
}

TEST_CASE("a replica with more examples than the global batch is rejected") {
  CHECK_NOTHROW(require_global_batch_size(8, 4, 1, 2));
  CHECK_NOTHROW(require_global_batch_size(8, 8, 0, 1));
  CHECK_NOTHROW(require_global_batch_size(0, 0, 1, 2));
  CHECK_THROWS_WITH_AS(
      require_global_batch_size(8, 9, 1, 2),
      "The global batch size of a loss is too small (it is 8, and replica 1 of 2 alone has 9 examples). Give the "
      "number of examples of all replicas together, which distribute_dataset divides among them.",
      dist::InvalidArgument);
  CHECK_THROWS_AS(require_global_batch_size(0, 1, 0, 2), dist::InvalidArgument);
}

TEST_CASE("the last replica warns if the global batch size is probably one replica's") {
  const auto said = [](std::size_t examples, std::size_t rank, std::size_t replicas) {
    return testing::stderr_of([&] {
             unsetenv("DIST_WARNINGS");
             std::construct_at(&dist::nn::detail::batch_size_of_one_replica);  // resets the warning
             for (int step = 0; step < 2; ++step) require_global_batch_size(8, examples, rank, replicas);
           })
        .stderr_text;
  };
  CHECK(said(8, 1, 2) ==
        "dist: replica 1 of 2 has all 8 examples of the global batch: if every replica has this number, the loss was "
        "given the size of one replica's batch, and gradients are 2 times too large. DIST_WARNINGS=0 silences this.\n");
  CHECK(said(8, 0, 2).empty());  // a small batch, all of it on the first replica
  CHECK(said(7, 1, 2).empty());
  CHECK(said(8, 0, 1).empty());
}
