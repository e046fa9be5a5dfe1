#include <dist/data/map.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/random.hpp>
#include <dist/data/auto_shard.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/range.hpp>
#include <dist/data/take_skip.hpp>

#include <data/sequences.hpp>

namespace data = dist::data;
using dist::RandomStream;
using dist_test::collect;

namespace {

/// Returns pairs of a number and the 32 random bits of its element.
auto with_bits(std::uint64_t seed) {
  return data::random_map(
      [](std::int64_t number, const RandomStream& random) {
        return number << 32 | static_cast<std::int64_t>(random.bits(0) >> 32);
      },
      seed);
}

}  // namespace

TEST_CASE("random_map has separate random numbers per element, seed and epoch") {
  const auto dataset = data::range(100) | with_bits(1);
  CHECK(dataset.cardinality() == data::Cardinality::known(100));
  std::set<std::int64_t> bits;
  for (const std::uint64_t epoch : {0U, 1U})
    for (const auto seed : {1U, 2U}) {
      const auto all = collect(data::range(100) | with_bits(seed), epoch);
      CHECK(all == collect(data::range(100) | with_bits(seed), epoch));
      for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK((all[i] >> 32) == static_cast<std::int64_t>(i));
        bits.insert(all[i] & 0xFFFFFFFF);
      }
    }
  CHECK(bits.size() >= 399);  // 400 numbers of 2^32: a collision is expected once in 50000 runs
}

TEST_CASE("the random numbers are Philox of seed, epoch and element index") {
  // The stream of seed, epoch and step gives each element a seed.
  const auto all = collect(data::range(3) | with_bits(7), 2);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t seed = RandomStream{7, 0x72616E646F6D6D00ULL ^ 2}.bits(i);
    const std::uint64_t bits = RandomStream{seed}.bits(0) >> 32;
    CHECK(all[i] == static_cast<std::int64_t>(i << 32 | bits));
  }
}

TEST_CASE("every round of repeat is another epoch") {
  const auto all = collect(data::range(4) | with_bits(1) | data::repeat(2));
  const auto first = collect(data::range(4) | with_bits(1), 0);
  const auto second = collect(data::range(4) | with_bits(1), 1);
  CHECK(std::vector(all.begin(), all.begin() + 4) == first);
  CHECK(std::vector(all.begin() + 4, all.end()) == second);
}

TEST_CASE("the results of random_map are independent of the number of workers and replicas") {
  const auto dataset = data::range(24) | with_bits(3);
  const auto all = collect(dataset, 1);
  for (const std::size_t workers : {1U, 2U, 3U})
    for (const std::size_t replicas : {1U, 2U}) {
      std::vector<std::int64_t> found(24);
      for (std::size_t worker = 0; worker < workers; ++worker) {
        const auto distributed =
            data::distribute_dataset(dataset | data::batch(6), replicas, {workers, worker, workers * replicas},
                                     {.auto_shard_policy = data::AutoShardPolicy::data});
        auto pass = distributed.iterate(1);
        typename std::remove_cvref_t<decltype(distributed)>::Element values(replicas);
        while (pass.next(values))
          for (const auto& rows : values)
            for (std::size_t i = 0; i < rows.size(); ++i)
              found[static_cast<std::size_t>(rows.data()[i] >> 32)] = rows.data()[i];
      }
      CHECK(found == all);
    }
}

TEST_CASE("a pass that is not resumable has random numbers for each element") {
  const auto dataset =
      data::range(10) | data::filter([](std::int64_t number) { return number % 2 == 0; }) | with_bits(1);
  static_assert(!data::Resumable<data::IteratorOf<decltype(dataset)>>);
  const auto all = collect(dataset);
  REQUIRE(all.size() == 5);
  CHECK((all[2] & 0xFFFFFFFF) == (collect(data::range(10) | with_bits(1))[2] & 0xFFFFFFFF));
}
