#include <dist/context/strategy.hpp>

#include <cstddef>
#include <type_traits>

#include <dist/context/contexts.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

namespace {

using Central = dist::CentralStorage<dist::Cpu>;

struct Complete {
  static constexpr bool shared = false;
  [[nodiscard]] static constexpr std::size_t copies(std::size_t replicas) { return replicas; }
  [[nodiscard]] static constexpr std::size_t copy_of(std::size_t replica) { return replica; }
};
struct SharedWhenRunning : Complete {
  bool shared = false;
};
struct NoCopies {
  static constexpr bool shared = false;
  [[nodiscard]] static constexpr std::size_t copy_of(std::size_t replica) { return replica; }
};
struct NoCopyOfReplica {
  static constexpr bool shared = false;
  [[nodiscard]] static constexpr std::size_t copies(std::size_t replicas) { return replicas; }
};

}  // namespace

TEST_CASE("a store provides its copies, and whether replicas share them, at compile time") {
  static_assert(dist::VariableStore<Complete> && dist::VariableStore<dist::MirroredStore> &&
                dist::VariableStore<dist::CentralStore>);
  static_assert(!dist::VariableStore<int> && !dist::VariableStore<SharedWhenRunning>);
  static_assert(!dist::VariableStore<NoCopies> && !dist::VariableStore<NoCopyOfReplica>);
}

TEST_CASE("StoreOf is the store of a context's strategy (spec A01, A18)") {
  static_assert(std::is_same_v<dist::StoreOf<Central::Context>, dist::CentralStore>);
  static_assert(std::is_same_v<dist::StoreOf<const dist::CrossReplicaContext<Central>&>, dist::CentralStore>);
  static_assert(std::is_same_v<dist::StoreOf<dist::Default::Context>, dist::MirroredStore>);
}
