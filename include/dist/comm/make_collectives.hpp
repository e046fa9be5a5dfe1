#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/device.hpp>

namespace dist {

/// A policy whose collectives work on memory of a device: they are made of the communicator and the replica's queue.
template <class Ops, class C, class Q>
concept OpsOnQueue = Queue<Q> && std::constructible_from<typename Ops::template On<C>, C, Q>;

/// A policy that keeps something for as long as the strategy lives, such as a vendor's communicators: `State<Device>`,
/// made of the strategy's queues and the number of its replicas here. Its collectives are made of the communicator, the
/// replica's queue and that state.
template <class Ops, class D>
concept OpsWithState = Device<D> && requires {
  requires std::constructible_from < typename Ops::template State<D>,
  const typename D::Queues&, std::size_t > ;
};

/// A policy that is another one where replicas are on devices of type D, whose memory the host does not reach:
/// `OnDevices<D>`, or in its place one derived from detail::NoOps, whose `require_header()` says in a sentence what to
/// include.
template <class Ops, class D>
concept OpsOfDevices = !D::Space::host_accessible && requires {
  typename Ops::template OnDevices<D>;
};

/// A policy for memory of devices that joins the replicas of all workers of a strategy by itself. The collectives of a
/// replica, `OfWorkers<Host>`, are made of `Host`, those of the host, through which replicas agree on what they do, of the
/// replica's queue, and of a `StateOfWorkers`. A strategy keeps that, made of the replicas' queues, their number here, and
/// its workers: a collective call of these.
template <class Ops>
concept OpsOfWorkers = Device<typename Ops::DefaultDevice> && requires {
  typename Ops::StateOfWorkers;
};

/// What a strategy keeps for its policy, where that also says where the replicas' memory comes from: `Memory` is made of the
/// devices and of `state.memory_source()`.
template <class State, class Memory>
concept BringsMemory = requires(const State& state, std::span<const std::size_t> devices) {
  Memory{devices, state.memory_source()};
};

/// A policy for memory of one type of devices, on which its strategies' replicas run where nobody names another.
template <class Ops>
concept NamesDevice = Device<typename Ops::DefaultDevice>;

namespace detail {

/// The devices of a policy that names none are `Otherwise`.
template <class Ops, class Otherwise>
struct DefaultDeviceOf {
  using Type = Otherwise;
};
template <NamesDevice Ops, class Otherwise>
struct DefaultDeviceOf<Ops, Otherwise> {
  using Type = typename Ops::DefaultDevice;
};
template <class Ops, class Otherwise>
using DefaultDevice = typename DefaultDeviceOf<Ops, Otherwise>::Type;

/// The policy that `Ops` is on `Device`.
template <class Ops, class Device>
struct OpsOn {
  using Type = Ops;
  [[nodiscard]] static constexpr bool require() { return true; }
};
template <class Ops, class Device>
  requires OpsOfDevices<Ops, Device>
struct OpsOn<Ops, Device> {
  using Type = typename Ops::template OnDevices<Device>;
  /// Whether it is a policy; refuses, in a sentence, where a header is missing.
  [[nodiscard]] static constexpr bool require() {
    if constexpr (std::derived_from<Type, NoOps>)
      return Type::require_header();
    else
      return true;
  }
};

/// Of a policy that keeps nothing.
struct NoState {
  template <class Queues>
  constexpr NoState(const Queues&, std::size_t) noexcept {}
};
template <class Ops, class Device>
struct StateOf {
  using Type = NoState;
};
template <class Ops, class Device>
  requires OpsWithState<Ops, Device>
struct StateOf<Ops, Device> {
  using Type = typename Ops::template State<Device>;
};

/// What a strategy keeps for its policy.
template <class Ops, class Device>
using PolicyState = typename StateOf<Ops, Device>::Type;

/// What a strategy of several workers keeps for a policy that joins their replicas, and the collectives of these, where
/// those of the host are `Host`; nothing, and `Host`, for other policies.
template <class Ops, class Host>
struct OfWorkers {
  struct State {
    constexpr State(const auto&, const auto&) noexcept {}
  };
  using Collectives = Host;
};
template <OpsOfWorkers Ops, class Host>
struct OfWorkers<Ops, Host> {
  using State = typename Ops::StateOfWorkers;
  using Collectives = typename Ops::template OfWorkers<Host>;
};

/// Memory of replicas on `devices` under a strategy that keeps `state` for its policy.
template <class Memory, class State>
[[nodiscard]] std::shared_ptr<Memory> make_memory(std::span<const std::size_t> devices,
                                                  [[maybe_unused]] const State& state) {
  if constexpr (BringsMemory<State, Memory>)
    return std::make_shared<Memory>(devices, state.memory_source());
  else
    return std::make_shared<Memory>(devices);
}

/// The collectives of one replica on `Device`, made of as much as the policy takes.
template <class Ops, Device D, class C>
[[nodiscard]] DIST_ALWAYS_INLINE auto make_collectives(C communicator, [[maybe_unused]] const typename D::Queue& queue,
                                                       [[maybe_unused]] PolicyState<Ops, D>& state) {
  using Collectives = typename Ops::template On<C>;
  if constexpr (OpsWithState<Ops, D>)
    return Collectives{communicator, queue, state};
  else if constexpr (OpsOnQueue<Ops, C, typename D::Queue>)
    return Collectives{communicator, queue};
  else
    return Collectives{communicator};
}

}  // namespace detail

}  // namespace dist
