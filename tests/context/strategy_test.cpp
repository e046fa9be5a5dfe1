#include <dist/context/strategy.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include <dist/comm/self.hpp>
#include <dist/device/cpu.hpp>
#include <support/guarded_device.hpp>

namespace {

struct HostStore {
  static constexpr bool shared = false;
  [[nodiscard]] static std::size_t copies(std::size_t replicas) { return replicas; }
  [[nodiscard]] static std::size_t copy_of(std::size_t local_replica) { return local_replica; }
};

struct Sizes {
  [[nodiscard]] std::size_t num_replicas_in_sync() const { return 1; }
  [[nodiscard]] std::size_t num_local_replicas() const { return 1; }
  [[nodiscard]] std::size_t num_workers() const { return 1; }
  [[nodiscard]] std::size_t worker_rank() const { return 0; }
  [[nodiscard]] bool is_chief() const { return true; }
};
struct Types {
  using Device = dist::Cpu;
  using Store = HostStore;
  using Collectives = dist::SelfCollectives;
};
struct Describing {
  [[nodiscard]] std::string describe() const { return "described"; }
};
struct Running {
  template <class Fn>
  void run(Fn&&) {}
};
template <class S>
struct Scoped {
  [[nodiscard]] dist::CrossReplicaContext<S> scope() { return dist::CrossReplicaContext<S>{static_cast<S&>(*this)}; }
};

struct Minimal : Sizes, Types, Describing, Running, Scoped<Minimal> {};
struct NoSizes : Types, Describing, Running, Scoped<NoSizes> {};
struct NoTypes : Sizes, Describing, Running, Scoped<NoTypes> {};
struct NoDescription : Sizes, Types, Running, Scoped<NoDescription> {};
struct NoRun : Sizes, Types, Describing, Scoped<NoRun> {};
struct NoScope : Sizes, Types, Describing, Running {};
struct NoDevice : Sizes, Describing, Running, Scoped<NoDevice> {
  using Store = HostStore;
  using Collectives = dist::SelfCollectives;
};
struct OnOtherDevice : Sizes, Describing, Running, Scoped<OnOtherDevice> {
  using Device = testing::GuardedDevice;
  using Store = HostStore;
  using Collectives = dist::SelfCollectives;
};
struct NoCollectives : Sizes, Describing, Running, Scoped<NoCollectives> {
  using Device = dist::Cpu;
  using Store = HostStore;
};
struct NoStore : Sizes, Describing, Running, Scoped<NoStore> {
  using Device = dist::Cpu;
  using Collectives = dist::SelfCollectives;
};
struct StoresSomewhere : Types, Sizes, Describing, Running, Scoped<StoresSomewhere> {
  using Store = int;
};
struct SizesAreInt : Types, Describing, Running, Scoped<SizesAreInt> {
  [[nodiscard]] int num_replicas_in_sync() const { return 1; }
  [[nodiscard]] int num_local_replicas() const { return 1; }
};
struct ScopeIsNumber : Sizes, Types, Describing, Running {
  [[nodiscard]] int scope() const { return 0; }
};
struct DescribesWithPointer : Sizes, Types, Running, Scoped<DescribesWithPointer> {
  [[nodiscard]] const char* describe() const { return ""; }
};

}  // namespace

TEST_CASE("types that lack a member of a strategy, or have another instead, do not model Strategy") {
  CHECK(dist::Strategy<Minimal>);
  CHECK_FALSE(dist::Strategy<NoSizes>);
  CHECK_FALSE(dist::Strategy<NoTypes>);
  CHECK_FALSE(dist::Strategy<NoDescription>);
  CHECK_FALSE(dist::Strategy<NoRun>);
  CHECK_FALSE(dist::Strategy<NoScope>);
  CHECK_FALSE(dist::Strategy<NoDevice>);
  CHECK_FALSE(dist::Strategy<NoCollectives>);
  CHECK_FALSE(dist::Strategy<NoStore>);
  CHECK_FALSE(dist::Strategy<StoresSomewhere>);
  CHECK_FALSE(dist::Strategy<SizesAreInt>);
  CHECK_FALSE(dist::Strategy<ScopeIsNumber>);
  CHECK_FALSE(dist::Strategy<DescribesWithPointer>);
  CHECK_FALSE(dist::Strategy<int>);
}

TEST_CASE("KeepsVariablesOnHost requires a device that shares the host's memory") {
  CHECK(dist::KeepsVariablesOnHost<Minimal>);
  CHECK(dist::Strategy<OnOtherDevice>);
  CHECK_FALSE(dist::KeepsVariablesOnHost<OnOtherDevice>);
  CHECK_FALSE(dist::KeepsVariablesOnHost<int>);
}
