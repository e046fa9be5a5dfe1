#pragma once

#include <concepts>
#include <cstddef>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/core/config.hpp>
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
concept OpsOfDevices = !D::Place::host_accessible && requires {
  typename Ops::template OnDevices<D>;
};

namespace detail {

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
