#include <dist/variable/store.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/index_range.hpp>
#include <dist/strategy/mirrored.hpp>

using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using dist::MirroredStore;

TEST_CASE("every replica has a separate copy (spec A01)") {
  static_assert(dist::VariableStore<MirroredStore> && !MirroredStore::shared);
  static_assert(MirroredStore::copies(5) == 5 && MirroredStore::copy_of(3) == 3);
}

TEST_CASE("every replica changes its whole copy") {
  Shared strategy{3};
  std::vector<std::size_t> once(3), shared_out(3), own(3);
  strategy.run([&](auto& replica) {
    const std::size_t me = replica.local_index();
    MirroredStore::once(replica, [&] { ++once[me]; });
    MirroredStore::share_out(replica, 10, [&](dist::IndexRange range) { shared_out[me] += range.size(); });
    std::size_t copy = me;
    own[me] = MirroredStore::update_local_then_average(replica, std::span{&copy, 1}, std::span<std::size_t>{},
                                                       [](std::span<std::size_t> mine) { return ++mine[0]; });
    if (copy != me + 1) ++once[me];
  });
  CHECK(once == std::vector<std::size_t>(3, 1));
  CHECK(shared_out == std::vector<std::size_t>(3, 10));
  CHECK(own == std::vector<std::size_t>{1, 2, 3});
}

TEST_CASE("replica 0's change of its copy is broadcast to every copy") {
  Shared strategy{3};
  std::vector<int> seen(3);
  strategy.run([&](auto& replica) {
    std::vector<int> copy{static_cast<int>(replica.local_index())};
    MirroredStore::from_first(replica, std::span<int>{copy}, [](std::span<int> first) { first[0] += 7; });
    seen[replica.local_index()] = copy[0];
  });
  CHECK(seen == std::vector<int>(3, 7));
}

TEST_CASE("copy 0 is copied to the others, even during a run") {
  Shared strategy{3};
  auto variable = strategy.variable<float>({2});
  for (const bool is_in_run : {false, true}) {
    const float value = is_in_run ? 4.0f : 3.0f;
    variable.component(strategy.scope(), 0)[1] = value;
    MirroredStore::spread(strategy, variable, is_in_run);
    for (std::size_t local = 0; local < 3; ++local) CHECK(variable.component(strategy.scope(), local)[1] == value);
  }
}

namespace {

/// Ownership in reversed order of replicas.
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

TEST_CASE("a type derived from OnShard may redefine ownership") {
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
