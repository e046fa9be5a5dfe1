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

/// The choice for members that can only be asked for a ring.
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

/// Chooses by what the members of the communicator can do (spec A04, H16, H23): ThreadAllReduce where they see
/// each other's memory, else the ring. The choice is made at compile time and is the same for every element type and
/// every call: the reasons for which tf.distribute falls back to one device call by call (32-bit integers, other
/// destinations; spec A05, H25) do not exist here.
///
/// Between members that pass messages it chooses call by call, by the number of bytes and of members, among a tree,
/// halving and doubling, and the ring (AlgorithmThresholds): by the thresholds that it is given, else by those that
/// follow from the usual costs of messages. All members must have the same ones.
struct AutoAllReduce {
  static constexpr std::string_view name = "AutoAllReduce";

  /// The policy chosen for a communicator.
  template <class C>
  using Chosen = typename detail::ChosenOps<C>::Type;

  template <class C>
  using On = typename Chosen<C>::template On<C>;
};

}  // namespace dist
