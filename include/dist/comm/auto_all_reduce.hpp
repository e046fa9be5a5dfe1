#pragma once

#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>

namespace dist {

namespace detail {

/// The choice for members that can only be asked for a ring.
template <class C>
struct ChosenOps {
  using Type = RingAllReduce;
};
template <class C>
  requires(SharesMemory<C>&& ExchangesSmall<C>)
struct ChosenOps<C> {
  using Type = SharedMemoryAllReduce;
};

}  // namespace detail

/// Chooses by what the members of the communicator can do (spec A04, H16, H23): SharedMemoryAllReduce where they see
/// each other's memory, else the ring. The choice is made at compile time and is the same for every element type and
/// every call: the reasons for which tf.distribute falls back to one device call by call (32-bit integers, other
/// destinations; spec A05, H25) do not exist here.
struct AutoAllReduce {
  static constexpr std::string_view name = "AutoAllReduce";

  /// The policy chosen for a communicator.
  template <class C>
  using Chosen = typename detail::ChosenOps<C>::Type;

  template <class C>
  using On = typename Chosen<C>::template On<C>;
};

}  // namespace dist
