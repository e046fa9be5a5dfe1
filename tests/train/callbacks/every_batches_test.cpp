#include <dist/train/callbacks/every_batches.hpp>

#include <doctest/doctest.h>

using dist::nn::callbacks::detail::EveryBatches;

TEST_CASE("batches are counted across epochs and groups") {
  EveryBatches every{3, "save_freq"};
  CHECK(every);
  const auto group = [&](std::size_t first, std::size_t last) {
    every.begin(first);
    return every.end(last);
  };
  CHECK_FALSE(group(0, 0));
  CHECK_FALSE(group(1, 1));
  CHECK(group(0, 0));  // of the next epoch
  CHECK_FALSE(group(1, 2));
  CHECK(group(3, 5));  // five since the last time
  CHECK_FALSE(group(6, 7));
  CHECK(every.seen() == 10);
  EveryBatches never{std::nullopt, "save_freq"};
  CHECK_FALSE(never);
  never.begin(0);
  CHECK_FALSE(never.end(100));
  CHECK(never.seen() == 101);
  CHECK_THROWS_AS((EveryBatches{0, "save_freq"}), dist::InvalidArgument);
}
