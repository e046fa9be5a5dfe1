#include <dist/strategy/one_replica.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/context/per_replica.hpp>
#include <dist/core/error.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/variable/store.hpp>

#include <doctest/doctest.h>

namespace {

/// The minimum that a strategy with one replica adds to its parts.
class Minimal
    : public dist::BasicStrategy<Minimal, dist::OneReplica<dist::Cpu>, dist::OneProcess, dist::MirroredStore> {
 public:
  Minimal() : BasicStrategy(ReplicaOptions{}) {}
  [[nodiscard]] static std::string describe() { return "Minimal"; }
};

static_assert(dist::Strategy<Minimal>);
static_assert(!std::is_copy_constructible_v<Minimal>);
static_assert(Minimal::num_replicas_in_sync() == 1 && Minimal::num_local_replicas() == 1);

}  // namespace

TEST_CASE("the context has the strategy, and one replica") {
  Minimal strategy;
  strategy.run([&](auto& replica) {
    CHECK(&replica.strategy() == &strategy);
    CHECK(replica.replica_id().index() == 0);
    CHECK(replica.num_replicas_in_sync() == 1);
    replica.barrier();
  });
}

TEST_CASE("a PerReplica argument is replaced by its only value, others are passed whole (spec C01)") {
  Minimal strategy;
  const dist::PerReplica<int> sliced(1, [](std::size_t) { return 4; });
  const int whole = 30;
  CHECK(strategy.run([](auto&, int mine, int all) { return mine + all; }, sliced, whole) == 34);
}

TEST_CASE("run inside run is allowed") {
  Minimal strategy;
  CHECK(strategy.run([&](auto&) { return strategy.run([](auto&) { return 5; }) + 1; }) == 6);
}

TEST_CASE("a result that cannot be copied or default-constructed is returned") {
  struct Named {
    explicit Named(std::unique_ptr<int> given) : number(std::move(given)) {}
    std::unique_ptr<int> number;
  };
  Minimal strategy;
  CHECK(*strategy.run([](auto&) { return Named{std::make_unique<int>(8)}; }).number == 8);
}

TEST_CASE("two strategies of one type do not share variables (spec G21)") {
  Minimal first;
  Minimal second;
  CHECK(first.memory_on<dist::Cpu>() != second.memory_on<dist::Cpu>());
  auto variable = first.variable<float>({}, 1.0f);
  CHECK_THROWS_AS(second.run([&](auto& replica) { variable.assign(replica, 2.0f); }), dist::WrongStrategy);
}
