#include <dist/comm/messages/message_ring.hpp>
// ranks: 1 2 3 4
// optimised

#include <dist/comm/ring_all_reduce.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <conformance/process_collectives.hpp>
#include <conformance/work_memory.hpp>
#include <support/mpi_group.hpp>

static_assert(dist::CrossDeviceOps<dist::RingAllReduce, dist::mpi::Communicator>);

TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::MpiGroup<dist::RingAllReduce>);
TEST_CASE_TEMPLATE_INSTANTIATE(work_memory, support::MpiGroup<dist::RingAllReduce>);

TEST_CASE("shards have several segments, the last one short or missing on some members (spec H18)") {
  const support::MpiGroup<dist::RingAllReduce> group{std::chrono::seconds{60}};
  const auto& ring = group.collectives();
  const std::size_t rank = ring.communicator().rank();
  const std::size_t size = ring.communicator().size();
  constexpr std::size_t segment = (std::size_t{1} << 20) / sizeof(float);
  // Just over two segments per member, such that the first shard has one segment more than the last one.
  for (const std::size_t count : {size * segment * 2 + 12345, size * segment * 2 + 1}) {
    const auto total = [&](std::size_t i) { return static_cast<float>(size * (i % 100) + size * (size - 1) / 2); };
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 100 + rank);
    const std::vector<float> before = values;
    std::vector<float> mirror(count, 1.0f);
    ring.reduce_and_apply(dist::sum, std::span<const float>{values}, std::span<float>{mirror},
                          [](std::size_t, float weight, float reduced) { return weight + reduced; });
    CHECK(values == before);
    ring.all_reduce(dist::sum, std::span<float>{values});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += values[i] != total(i) || mirror[i] != total(i) + 1;
    CHECK(wrong == 0);
    std::fill(mirror.begin(), mirror.end(), static_cast<float>(rank));
    ring.broadcast(size - 1, std::span<float>{mirror});
    CHECK(std::count(mirror.begin(), mirror.end(), static_cast<float>(size - 1)) == static_cast<std::ptrdiff_t>(count));
  }
  std::vector<std::size_t> counts(size);
  std::vector<std::int64_t> expected;
  for (std::size_t other = 0; other < size; ++other) {
    counts[other] = other * 200000 + 7;
    expected.insert(expected.end(), counts[other], static_cast<std::int64_t>(other));
  }
  const std::vector<std::int64_t> mine(counts[rank], static_cast<std::int64_t>(rank));
  std::vector<std::int64_t> all(expected.size());
  ring.all_gather(std::span<const std::int64_t>{mine}, std::span<const std::size_t>{counts},
                  std::span<std::int64_t>{all});
  CHECK(all == expected);
}
