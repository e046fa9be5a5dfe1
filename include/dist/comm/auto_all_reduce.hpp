#pragma once

#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/messages/declarations.hpp>
#include <dist/comm/ring_all_reduce.hpp>

namespace dist {

namespace detail {

/// AutoAllReduce between members that pass messages.
struct ByThresholds {
  template <class C>
  using On = MessageCollectives<C, MessageChoice<C>>;
};

/// The choice for members that only support a ring.
template <class C>
struct ChosenOps {
  using Type = RingAllReduce;
};
template <class C>
  requires(SharesMemory<C>&& ExchangesSmall<C>)
struct ChosenOps<C> {
  using Type = ThreadAllReduce;
};
template <class C>
  requires(PassesMessages<C> && !SharesMemory<C>)
struct ChosenOps<C> {
  using Type = ByThresholds;
};

}  // namespace detail

/// Chooses the algorithm by the capabilities of the communicator (spec A04, H16, H23): ThreadAllReduce for shared
/// memory, else the ring. The choice is made at compile time, for all element types and calls, without tf.distribute's
/// fallbacks to one device (32-bit integers, other destinations; spec A05, H25).
///
/// Members that pass messages choose per call, by the numbers of bytes and members, between a tree, halving and
/// doubling, and the ring. AlgorithmThresholds are given, or derived from typical message costs. They must be the same
/// on all members.
struct AutoAllReduce {
  static constexpr std::string_view name = "AutoAllReduce";

  /// The policy chosen for a communicator.
  template <class C>
  using Chosen = typename detail::ChosenOps<C>::Type;

  template <class C>
  using On = typename Chosen<C>::template On<C>;
};

}  // namespace dist
