#include <dist/context/store.hpp>

#include <cstddef>
#include <type_traits>

#include <dist/context/cross_replica_context.hpp>
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

TEST_CASE("a store says which copies there are, and whether replicas share them, when the program is compiled") {
  static_assert(dist::Store<Complete> && dist::Store<dist::MirroredStore> && dist::Store<dist::CentralStore>);
  static_assert(!dist::Store<int> && !dist::Store<SharedWhenRunning>);
  static_assert(!dist::Store<NoCopies> && !dist::Store<NoCopyOfReplica>);
}

TEST_CASE("a context knows the store of its strategy (spec A01, A18)") {
  static_assert(std::is_same_v<dist::StoreOf<Central::Context>, dist::CentralStore>);
  static_assert(std::is_same_v<dist::StoreOf<const dist::CrossReplicaContext<Central>&>, dist::CentralStore>);
  static_assert(std::is_same_v<dist::StoreOf<dist::Default::Context>, dist::MirroredStore>);
}
