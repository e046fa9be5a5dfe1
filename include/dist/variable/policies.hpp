#pragma once

#include <concepts>

#include <dist/core/reduce_op.hpp>

namespace dist {

/// The replicas' copies hold the same value: a write in a replica function is aggregated and applied to all (spec G01).
struct OnWrite {};
/// Each replica writes its own copy without communication; reading outside replica functions aggregates (spec G01).
struct OnRead {};

/// Aggregation None: values of different replicas are never combined (spec G02). Sum and Mean are the reduce ops.
struct None {};
/// Aggregation by taking replica 0's value.
struct OnlyFirstReplica {};

template <class S>
concept Synchronization = std::same_as<S, OnWrite> || std::same_as<S, OnRead>;

template <class A>
concept Aggregation =
    std::same_as<A, None> || std::same_as<A, Sum> || std::same_as<A, Mean> || std::same_as<A, OnlyFirstReplica>;

}  // namespace dist
