#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/device.hpp>

namespace dist {

/// A policy for device memory, whose collectives are constructed from the communicator and the replica's queue.
template <class Ops, class C, class Q>
concept OpsOnQueue = Queue<Q> && std::constructible_from<typename Ops::template On<C>, C, Q>;

/// A policy with state for the lifetime of the strategy, such as vendor communicators: `State<Device>`, constructed
/// from the strategy's queues and its number of local replicas. Its collectives are constructed from the communicator,
/// the replica's queue and this state.
template <class Ops, class D>
concept OpsWithState = Device<D> && requires {
  requires std::constructible_from < typename Ops::template State<D>,
  const typename D::Queues&, std::size_t > ;
};

/// A policy that is replaced by `OnDevices<D>` on devices of type D whose memory the host cannot access. If
/// `OnDevices<D>` derives from detail::NoOps, its `require_header()` names the header to include.
template <class Ops, class D>
concept OpsOfDevices = !D::Space::host_accessible && requires {
  typename Ops::template OnDevices<D>;
};

/// A policy for device memory that joins the replicas of all workers itself. Its collectives `OfWorkers<Host>` are
/// constructed from the host's collectives, by which replicas agree on their calls, the replica's queue, and a
/// `StateOfWorkers`. The workers of the strategy create this state together, from the replicas' queues, their local
/// number, and the workers.
template <class Ops>
concept OpsOfWorkers = Device<typename Ops::DefaultDevice> && requires {
  typename Ops::StateOfWorkers;
};

/// Policy state that provides memory for replicas: `Memory` is constructed from the devices and
/// `state.memory_source()`.
template <class State, class Memory>
concept BringsMemory = requires(const State& state, std::span<const std::size_t> devices) {
  Memory{devices, state.memory_source()};
};

/// A policy with a default device for its strategies.
template <class Ops>
concept NamesDevice = Device<typename Ops::DefaultDevice>;

namespace detail {

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

/// The policy that replaces `Ops` on `Device`.
template <class Ops, class Device>
struct OpsOn {
  using Type = Ops;
  [[nodiscard]] static constexpr bool require() { return true; }
};
template <class Ops, class Device>
  requires OpsOfDevices<Ops, Device>
struct OpsOn<Ops, Device> {
  using Type = typename Ops::template OnDevices<Device>;
  /// Fails to compile, naming the missing header, unless it is a policy.
  [[nodiscard]] static constexpr bool require() {
    if constexpr (std::derived_from<Type, NoOps>)
      return Type::require_header();
    else
      return true;
  }
};

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

template <class Ops, class Device>
using PolicyState = typename StateOf<Ops, Device>::Type;

/// The state and collectives of a policy that joins the replicas of several workers, given the host's collectives
/// `Host`. For other policies an empty state, and `Host`.
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

/// Creates the memory of replicas on `devices`.
template <class Memory, class State>
[[nodiscard]] std::shared_ptr<Memory> make_memory(std::span<const std::size_t> devices,
                                                  [[maybe_unused]] const State& state) {
  if constexpr (BringsMemory<State, Memory>)
    return std::make_shared<Memory>(devices, state.memory_source());
  else
    return std::make_shared<Memory>(devices);
}

/// Creates the collectives of one replica, with the arguments that the policy accepts.
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
