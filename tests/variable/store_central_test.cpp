#include <dist/variable/store.hpp>

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/context/strategy.hpp>
#include <dist/strategy/central_storage.hpp>

#include <doctest/doctest.h>

using Central = dist::CentralStorage<dist::Cpu>;
using dist::CentralStore;

TEST_CASE("all replicas read one copy (spec A18)") {
  static_assert(dist::VariableStore<CentralStore> && CentralStore::shared);
  static_assert(CentralStore::copies(5) == 1 && CentralStore::copy_of(3) == 0);
}

TEST_CASE("one replica changes the copy while no other replica uses it") {
  Central strategy{4};
  int copy = 0;
  std::atomic<int> wrong{0};
  strategy.run([&](auto& replica) {
    for (int time = 0; time < 100; ++time) {
      if (copy != 2 * time) ++wrong;
      CentralStore::once(replica, [&] { ++copy; });
      if (copy != 2 * time + 1) ++wrong;
      CentralStore::from_first(replica, std::span{&copy, 1}, [](std::span<int> first) { ++first[0]; });
    }
  });
  CHECK(wrong == 0);
  CHECK(copy == 200);
}

TEST_CASE("the replicas share the changes, each on one replica") {
  Central strategy{3};
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{10}}) {
    std::vector<int> changed(count);
    std::atomic<std::size_t> missing{0};
    strategy.run([&](auto& replica) {
      CentralStore::share_out(replica, count, [&](dist::IndexRange mine) {
        for (std::size_t i = mine.begin; i < mine.end; ++i) ++changed[i];
      });
      for (const int times : changed) missing += times == 0;
    });
    CHECK(changed == std::vector<int>(count, 1));
    CHECK(missing == 0);
  }
}

TEST_CASE("local changes of replicas are averaged into the copy") {
  Central strategy{4};
  auto variable = strategy.variable<double>({50}, 1.0);
  const auto own = strategy.buffer<double>({50});
  const auto last = strategy.run([&](auto& replica) {
    return CentralStore::update_local_then_average(replica, variable.component(replica), own.component(replica),
                                                   [&](std::span<double> mine) {
                                                     for (double& element : mine)
                                                       element += static_cast<double>(replica.local_index());
                                                     return mine[49];
                                                   });
  });
  for (std::size_t replica = 0; replica < 4; ++replica) CHECK(last[replica] == 1 + static_cast<double>(replica));
  for (const double element : variable.component(strategy.scope(), 0)) CHECK(element == 2.5);
}
