#pragma once

#include <concepts>

namespace dist {

/// Where a strategy keeps its variables; a strategy names one as its `Placement`.

/// A copy in the memory of every replica (spec A01).
struct OnEveryReplica {};
/// One copy that all replicas read and write (spec A18).
struct OnParameterDevice {};

template <class P>
concept Placement = std::same_as<P, OnEveryReplica> || std::same_as<P, OnParameterDevice>;

/// Whether the strategy of context `C` keeps one copy of each variable for all replicas.
template <class C>
inline constexpr bool stores_centrally = std::same_as<typename C::Strategy::Placement, OnParameterDevice>;

}  // namespace dist
