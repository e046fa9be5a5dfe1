#include <dist/variable/store/mirrored.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include <dist/context/strategy.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using dist::MirroredStore;

TEST_CASE("every replica has a copy of its own (spec A01)") {
  static_assert(dist::VariableStore<MirroredStore> && !MirroredStore::shared);
  static_assert(MirroredStore::copies(5) == 5 && MirroredStore::copy_of(3) == 3);
}

TEST_CASE("every replica changes all of its copy for itself") {
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

TEST_CASE("what replica 0 makes of its copy is in every copy") {
  Shared strategy{3};
  std::vector<int> seen(3);
  strategy.run([&](auto& replica) {
    std::vector<int> copy{static_cast<int>(replica.local_index())};
    MirroredStore::from_first(replica, std::span<int>{copy}, [](std::span<int> first) { first[0] += 7; });
    seen[replica.local_index()] = copy[0];
  });
  CHECK(seen == std::vector<int>(3, 7));
}

TEST_CASE("copy 0 is spread to the others, also while replicas run") {
  Shared strategy{3};
  auto variable = strategy.variable<float>({2});
  for (const bool is_in_run : {false, true}) {
    const float value = is_in_run ? 4.0f : 3.0f;
    variable.component(strategy.scope(), 0)[1] = value;
    MirroredStore::spread(strategy, variable, is_in_run);
    for (std::size_t local = 0; local < 3; ++local) CHECK(variable.component(strategy.scope(), local)[1] == value);
  }
}
