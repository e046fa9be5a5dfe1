#include <dist/comm/messages/sharded_reduction.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/core/reduce_op.hpp>

TEST_CASE("shards cover the elements in whole cache lines of any type") {
  CHECK(dist::detail::message_shard(1000, 0, 3) == dist::IndexRange{0, 384});
  CHECK(dist::detail::message_shard(1000, 1, 3) == dist::IndexRange{384, 704});
  CHECK(dist::detail::message_shard(1000, 2, 3) == dist::IndexRange{704, 1000});
  CHECK(dist::detail::message_shard(10, 2, 3).size() == 0);
}

TEST_CASE("sums of 16-bit values are computed in float and rounded once, at the end") {
  const std::vector<dist::BFloat16> small(3, dist::BFloat16{1.0f / 256});
  std::vector<float> sums(3, 1.0f);
  const dist::Reduction& reduction = dist::reduction_of<dist::BFloat16, dist::Sum>;
  for (int member = 0; member < 3; ++member)
    reduction.combine(std::as_writable_bytes(std::span{sums}).data(), std::as_bytes(std::span{small}).data(), 3);
  std::vector<float> rounded(8);
  dist::detail::use_finished(reduction, {5, 8}, std::as_bytes(std::span{sums}).data(), nullptr, 4,
                             [&](std::size_t first, std::span<const std::byte> reduced) {
                               for (const dist::BFloat16 value : dist::detail::elements_in<dist::BFloat16>(reduced))
                                 rounded[first++] = float{value};
                             });
  CHECK(rounded == std::vector<float>{0, 0, 0, 0, 0, 1.015625f, 1.015625f, 1.015625f});
  std::vector<float> wide(3);
  reduction.widen(std::as_writable_bytes(std::span{wide}).data(), std::as_bytes(std::span{small}).data(), 3);
  CHECK(wide == std::vector<float>(3, 1.0f / 256));
}
