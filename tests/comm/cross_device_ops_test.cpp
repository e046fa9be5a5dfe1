#include <dist/comm/cross_device_ops.hpp>

#include <cstddef>
#include <exception>
#include <span>
#include <string_view>

#include <dist/comm/self.hpp>
#include <dist/core/duration.hpp>

#include <doctest/doctest.h>

namespace {

struct Reducing {
  template <class Op, class T>
  void all_reduce(Op, std::span<T>) const {}
};
struct Broadcasting {
  template <class T>
  void broadcast(std::size_t, std::span<T>) const {}
};
struct Rendezvous {
  template <class T>
  void all_gather(std::span<const T>, std::span<const std::size_t>, std::span<T>) const {}
};
struct Exchanging {
  template <class T>
  void all_gather_values(std::string_view, const T&, std::span<T>) const {}
};
struct Applying {
  template <class Op, class T, class Update>
  void reduce_and_apply(Op, std::span<const T>, std::span<T>, const Update&) const {}
};
struct Scattering {
  template <class Op, class T, class Use>
  void reduce_scatter(Op, std::span<const T>, Use&&) const {}
};
struct Updating {
  template <class T, class Update>
  void update_shards(std::span<const T>, std::span<T>, const Update&) const {}
};
struct Knowing {
  [[nodiscard]] dist::SelfCommunicator communicator() const { return {}; }
};
struct KnowingNumber {
  [[nodiscard]] int communicator() const { return 0; }
};

template <class Derived>
struct Telling {
  void begin_attempt() const noexcept {}
  void cancel(const dist::FailureNotice&) const noexcept {}
  void cancel(const std::exception_ptr&) const noexcept {}
  [[nodiscard]] bool is_broken() const noexcept { return false; }
  [[nodiscard]] Derived with_timeout(std::chrono::nanoseconds) const { return {}; }
};

struct Halves : Scattering, Updating {};

struct Minimal : Reducing, Broadcasting, Rendezvous, Exchanging, Applying, Halves, Knowing, Telling<Minimal> {};
struct ReducesByChanging : Broadcasting, Rendezvous, Exchanging, Applying, Halves, Knowing, Telling<ReducesByChanging> {
  template <class Op, class T>
  void all_reduce(Op, std::span<T>) {}
};
struct NoAllReduce : Broadcasting, Rendezvous, Exchanging, Applying, Halves, Knowing, Telling<NoAllReduce> {};
struct NoBroadcast : Reducing, Rendezvous, Exchanging, Applying, Halves, Knowing, Telling<NoBroadcast> {};
struct NoAllGather : Reducing, Broadcasting, Exchanging, Applying, Halves, Knowing, Telling<NoAllGather> {};
struct NoExchange : Reducing, Broadcasting, Rendezvous, Applying, Halves, Knowing, Telling<NoExchange> {};
struct NoApply : Reducing, Broadcasting, Rendezvous, Exchanging, Halves, Knowing, Telling<NoApply> {};
struct NoReduceScatter : Reducing,
                         Broadcasting,
                         Rendezvous,
                         Exchanging,
                         Applying,
                         Updating,
                         Knowing,
                         Telling<NoReduceScatter> {};
struct NoUpdateShards : Reducing,
                        Broadcasting,
                        Rendezvous,
                        Exchanging,
                        Applying,
                        Scattering,
                        Knowing,
                        Telling<NoUpdateShards> {};
struct NotTelling : Reducing, Broadcasting, Rendezvous, Exchanging, Applying, Halves, Knowing {};
struct NoCommunicator : Reducing, Broadcasting, Rendezvous, Exchanging, Applying, Halves, Telling<NoCommunicator> {};
struct NumberAsCommunicator : Reducing,
                              Broadcasting,
                              Rendezvous,
                              Exchanging,
                              Applying,
                              Halves,
                              KnowingNumber,
                              Telling<NumberAsCommunicator> {};

static_assert(dist::Collectives<Minimal>);
static_assert(!dist::Collectives<NoAllReduce>);
static_assert(!dist::Collectives<ReducesByChanging>);
static_assert(!dist::Collectives<NoBroadcast>);
static_assert(!dist::Collectives<NoAllGather>);
static_assert(!dist::Collectives<NoExchange>);
static_assert(!dist::Collectives<NoApply>);
static_assert(!dist::Collectives<NoReduceScatter>);
static_assert(!dist::Collectives<NoUpdateShards>);
static_assert(!dist::Collectives<NotTelling>);
static_assert(!dist::Collectives<NoCommunicator>);
static_assert(!dist::Collectives<NumberAsCommunicator>);

struct Policy {
  static constexpr std::string_view name = "Policy";
  template <class C>
  using On = Minimal;
};
struct WithState : Policy {
  int state = 0;
};
struct Nameless {
  template <class C>
  using On = Minimal;
};
struct NamedByNumber : Policy {
  static constexpr int name = 7;
};
struct WithoutOn {
  static constexpr std::string_view name = "WithoutOn";
};
struct OnNothing : Policy {
  template <class C>
  using On = NoBroadcast;
};

static_assert(dist::CrossDeviceOps<Policy, dist::SelfCommunicator>);
static_assert(!dist::CrossDeviceOps<WithState, dist::SelfCommunicator>);
static_assert(!dist::CrossDeviceOps<Nameless, dist::SelfCommunicator>);
static_assert(!dist::CrossDeviceOps<NamedByNumber, dist::SelfCommunicator>);
static_assert(!dist::CrossDeviceOps<WithoutOn, dist::SelfCommunicator>);
static_assert(!dist::CrossDeviceOps<OnNothing, dist::SelfCommunicator>);
static_assert(!dist::CrossDeviceOps<int, dist::SelfCommunicator>);

}  // namespace

TEST_CASE("the update that the concept uses changes nothing") {
  const float reduced[] = {3, 4};
  dist::NoOp{}(0, reduced);
  CHECK(dist::detail::KeepWeight{}(0, 1, 3) == 1);
}
