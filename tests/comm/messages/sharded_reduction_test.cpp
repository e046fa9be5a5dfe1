#include <dist/comm/messages/sharded_reduction.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/core/reduce_op.hpp>

TEST_CASE("shards cover the elements, on whole cache lines of any type") {
  CHECK(dist::detail::message_shard(1000, 0, 3) == dist::IndexRange{0, 384});
  CHECK(dist::detail::message_shard(1000, 1, 3) == dist::IndexRange{384, 704});
  CHECK(dist::detail::message_shard(1000, 2, 3) == dist::IndexRange{704, 1000});
  CHECK(dist::detail::message_shard(10, 2, 3).size() == 0);
}

TEST_CASE("sums of 16-bit values are made in float and rounded once, at the end") {
  const std::vector<dist::BFloat16> small(3, dist::BFloat16{1.0f / 256});
  std::vector<float> sums(3, 1.0f);
  for (int member = 0; member < 3; ++member) dist::detail::combine_into(dist::sum, std::span{sums}, small.data());
  std::vector<float> rounded(8);
  dist::detail::finish_sums<dist::BFloat16>(dist::sum, 4, std::span<const float>{sums}, 5,
                                            [&](std::size_t first, std::span<const dist::BFloat16> reduced) {
                                              for (std::size_t i = 0; i < reduced.size(); ++i)
                                                rounded[first + i] = float{reduced[i]};
                                            });
  CHECK(rounded == std::vector<float>{0, 0, 0, 0, 0, 1.015625f, 1.015625f, 1.015625f});
  std::vector<float> wide(3);
  dist::detail::widen_into(std::span{small}, wide.data());
  CHECK(wide == std::vector<float>(3, 1.0f / 256));
}
