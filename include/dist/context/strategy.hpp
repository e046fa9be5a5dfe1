#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

#include <dist/context/contexts.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

/// The strategy's policy for copies of variables, its `Store`. It tells variables, optimizers and layers where copies
/// are and which replica changes them, so that they do not depend on a particular store.
///
/// `copies(replicas)` is the number of copies for a process with `replicas` replicas, and `copy_of(local_replica)` the
/// copy that a replica reads; copies are numbered in the order of their first readers. If replicas share a copy
/// (`shared`), a variable has one value for all, regardless of its synchronization, and a write in a replica function
/// is one write for all.
///
/// In replica functions it also has (MirroredStore is the shortest example):
///
/// | operation | effect |
/// |---|---|
/// | `once(replica, change)` | calls `change()` on one reader of each copy, while no other reader uses the copy |
/// | `share_out(replica, count, change)` | after a collective call of all: calls `change(range)` with this reader's share of `count` elements of its copy; returns when all shares are changed |
/// | `from_first(replica, copy, change)` | calls `change(copy)` on replica 0, whose values are then copied to every copy |
/// | `update_local_then_average(replica, copy, own, change)` | calls `change` with elements of the replica's own, its copy or `own` with the values of the copy, and returns its result; the copy then becomes the mean of all |
///
/// and outside replica functions `spread(strategy, variable)`, which copies copy 0 to the other copies of the process.
template <class S>
concept VariableStore = requires(std::size_t count) {
  {std::bool_constant<S::shared>{}};
  { S::copies(count) } -> std::same_as<std::size_t>;
  { S::copy_of(count) } -> std::same_as<std::size_t>;
};

/// A store of variables in other processes: their memory in this process is a cache, which the store reads and writes
/// for the operations of the variable. Its `remote` is true. In every context it also has
///
/// | operation | effect |
/// |---|---|
/// | `await(context, variable, elements)` | waits until these elements of the cache are valid |
/// | `change(context, variable)` | reports that the variable may be changed in its process |
/// | `write(context, variable, range, values, update)` | updates these elements in their process, and in a step the cache, too |
///
/// and in replica functions the operations of optimizers: see ServerStore.
template <class S>
concept RemoteStore = VariableStore<S> && requires {
  requires S::remote;
};

/// The store of the strategy of context `C`.
template <class C>
using StoreOf = typename std::remove_cvref_t<C>::Strategy::Store;

/// A strategy: defines where replicas run, where variables are stored, and how replicas communicate. Library code
/// depends only on this concept.
///
/// | member | meaning |
/// |---|---|
/// | `Device` | the type of the replicas' devices |
/// | `Collectives` | the collectives between all replicas |
/// | `Store` | where copies of variables are, a VariableStore |
/// | `num_replicas_in_sync()` | the number of replicas of all processes |
/// | `num_local_replicas()` | the number of replicas of this process |
/// | `num_workers()`, `worker_rank()` | the number of processes, and the number of this process, from 0 |
/// | `is_chief()` | true in the process that does the work that only one process may do |
/// | `scope()` | the context outside replica functions |
/// | `describe()` | the strategy as text, for messages: "Mirrored<ThreadAllReduce, Cpu>: 2 replicas on /cpu:0 /cpu:1" |
/// | `run(fn, args...)` | calls `fn(replica, args...)` on every replica, and returns their results |
template <class S>
concept Strategy = requires(S& strategy) {
  typename S::Device;
  typename S::Collectives;
  requires VariableStore<typename S::Store>;
  { strategy.num_replicas_in_sync() } -> std::same_as<std::size_t>;
  { strategy.num_local_replicas() } -> std::same_as<std::size_t>;
  { strategy.num_workers() } -> std::same_as<std::size_t>;
  { strategy.worker_rank() } -> std::same_as<std::size_t>;
  { strategy.is_chief() } -> std::same_as<bool>;
  { strategy.scope() } -> InCrossReplica;
  { strategy.describe() } -> std::same_as<std::string>;
  strategy.run(NoOp{});
};

/// A strategy whose variables are in host memory.
template <class S>
concept KeepsVariablesOnHost = Strategy<S> && S::Device::Space::host_accessible;

/// The error message for an object, such as "an nn::Metric", without a strategy; `example` shows the correct call.
#define DIST_NEEDS_STRATEGY(object, example) \
  object " needs a strategy as its first argument, such as a dist::Default or a dist::Mirrored: " example

namespace detail {
/// A type other than a strategy.
template <class T>
concept NoStrategy = !Strategy<std::remove_reference_t<T>>;
}  // namespace detail

}  // namespace dist
