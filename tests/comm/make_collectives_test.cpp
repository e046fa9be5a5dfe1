#include <dist/comm/make_collectives.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/comm/self.hpp>
#include <dist/device/cpu.hpp>

#include <doctest/doctest.h>

namespace {

using Queue = dist::Cpu::Queue;

struct OfHost {
  template <class C>
  struct On {
    explicit On(C) {}
    int made_of = 1;
  };
};
struct OfDevice {
  template <class C>
  struct On {
    On(C, Queue) {}
    int made_of = 2;
  };
};
struct Keeping {
  template <class D>
  struct State {
    State(const typename D::Queues&, std::size_t count) : replicas(count) {}
    std::size_t replicas;
    int made = 0;
  };
  template <class C>
  struct On {
    On(C, Queue, State<dist::Cpu>& kept) : state(&kept) { ++kept.made; }
    State<dist::Cpu>* state;
    int made_of = 3;
  };
};

struct Far {
  struct Space {
    static constexpr bool host_accessible = false;
  };
};
/// A policy that is replaced on devices whose memory the host cannot access.
struct Changing : OfHost {
  template <class D>
  struct OnDevices : OfDevice {};
};

struct Bringing {
  [[nodiscard]] static int memory_source() { return 7; }
};
struct MemoryOfDevices {
  explicit MemoryOfDevices(std::span<const std::size_t> on, int from = 0) : replicas(on.size()), source(from) {}
  std::size_t replicas;
  int source;
};

template <class Ops>
auto made(dist::detail::PolicyState<Ops, dist::Cpu>& state) {
  return dist::detail::make_collectives<Ops, dist::Cpu>(dist::SelfCommunicator{}, Queue{}, state);
}

}  // namespace

TEST_CASE("collectives are constructed from the communicator, and the queue and state if the policy accepts them") {
  CHECK(!dist::OpsOnQueue<OfHost, dist::SelfCommunicator, Queue>);
  CHECK(dist::OpsOnQueue<OfDevice, dist::SelfCommunicator, Queue>);
  CHECK(!dist::OpsWithState<OfDevice, dist::Cpu>);
  CHECK(dist::OpsWithState<Keeping, dist::Cpu>);
  const std::size_t devices[3] = {0, 1, 2};
  const dist::Cpu::Queues queues{devices};
  dist::detail::PolicyState<OfHost, dist::Cpu> none{queues, 3};
  CHECK(std::is_empty_v<decltype(none)>);
  CHECK(made<OfHost>(none).made_of == 1);
  CHECK(made<OfDevice>(none).made_of == 2);
  dist::detail::PolicyState<Keeping, dist::Cpu> kept{queues, 3};
  CHECK(kept.replicas == 3);
  CHECK(made<Keeping>(kept).made_of == 3);
  CHECK(made<Keeping>(kept).state == &kept);
  CHECK(kept.made == 2);
}

TEST_CASE("a policy may be replaced on devices whose memory the host cannot access") {
  CHECK(std::is_same_v<dist::detail::OpsOn<Changing, dist::Cpu>::Type, Changing>);
  CHECK(std::is_same_v<dist::detail::OpsOn<Changing, Far>::Type, Changing::OnDevices<Far>>);
  CHECK(std::is_same_v<dist::detail::OpsOn<OfDevice, Far>::Type, OfDevice>);
}

TEST_CASE("a policy's state may provide the memory") {
  CHECK(dist::BringsMemory<Bringing, MemoryOfDevices>);
  CHECK(!dist::BringsMemory<Keeping::State<dist::Cpu>, MemoryOfDevices>);
  CHECK(!dist::BringsMemory<Bringing, dist::Cpu::Memory>);
  const std::size_t devices[3] = {0, 1, 2};
  CHECK(dist::detail::make_memory<MemoryOfDevices>(devices, Bringing{})->source == 7);
  CHECK(dist::detail::make_memory<MemoryOfDevices>(devices, OfHost{})->source == 0);
  CHECK(dist::detail::make_memory<MemoryOfDevices>(devices, OfHost{})->replicas == 3);
}
