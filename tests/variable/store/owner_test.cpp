#include <dist/variable/store/owner.hpp>

#include <cstddef>
#include <span>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/index_range.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

namespace {

/// The replicas own the elements of the other end of the array first.
struct Reversed : dist::OnShard {
  template <class T>
  static void update_shards(const auto& replica, std::span<const T> given, std::span<T> values, const auto& update) {
    const std::size_t replicas = replica.num_replicas_in_sync();
    replica.share("reversed shards", values, [&](auto&& peers) {
      const dist::IndexRange mine = dist::shard_of(values.size(), replicas - 1 - replica.local_index(), replicas);
      dist::detail::update_range(update, mine.begin, values.subspan(mine.begin, mine.size()),
                                 given.subspan(mine.begin, mine.size()));
      for (std::size_t rank = 0; rank < replicas; ++rank)
        if (rank != replica.local_index())
          for (std::size_t i = mine.begin; i < mine.end; ++i) peers(rank)[i] = values[i];
    });
  }
};

}  // namespace

TEST_CASE("a type derived from OnShard says whose the elements are") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  auto slots = strategy.variable<int, Reversed>({30});
  dist::Tensor<int> values{{30}};
  for (std::size_t i = 0; i < 30; ++i) values[i] = static_cast<int>(i) + 1;
  slots.restore(strategy.scope(), values);
  CHECK(slots.component(strategy.scope(), 0)[29] == 30);
  CHECK(slots.component(strategy.scope(), 0)[0] == 0);
  CHECK(slots.component(strategy.scope(), 2)[0] == 1);
  CHECK(slots.component(strategy.scope(), 2)[29] == 0);
  const auto whole = slots.whole(strategy.scope());
  for (std::size_t i = 0; i < 30; ++i) CHECK(whole[i] == values[i]);
}
