#include <dist/context/worker_copies.hpp>

#include <doctest/doctest.h>

#include <tuple>

#include <dist/strategy/default.hpp>

namespace {

struct Copied {
  [[nodiscard]] const dist::VariablesMade& variables_made() const { return made; }
  [[nodiscard]] std::tuple<int> arguments() const { return {1}; }
  dist::VariablesMade made;
};
struct WithoutArguments {
  [[nodiscard]] const dist::VariablesMade& variables_made() const { return made; }
  dist::VariablesMade made;
};

/// The parts of a strategy with a RemoteStore that this test needs.
struct Remote {
  struct Store {
    static constexpr bool shared = false, remote = true;
    static std::size_t copies(std::size_t replicas) { return replicas; }
    static std::size_t copy_of(std::size_t replica) { return replica; }
  };
  struct Cache {
    [[nodiscard]] static std::uint64_t count() { return 7; }
  };
  [[nodiscard]] static Cache variable_cache() { return {}; }
};

}  // namespace

TEST_CASE("an object with copies on workers has its variables and its constructor's arguments") {
  static_assert(dist::HasWorkerCopies<Copied>);
  static_assert(!dist::HasWorkerCopies<WithoutArguments>);
  Remote remote;
  const dist::VariablesMade made{remote};
  CHECK(made.strategy() == &remote);
  CHECK(made.first() == 7);
}

TEST_CASE("variables of other strategies are not recorded") {
  dist::Default strategy;
  const dist::VariablesMade made{strategy};
  CHECK(made.strategy() == nullptr);
}
