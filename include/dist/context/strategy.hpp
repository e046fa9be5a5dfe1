#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

#include <dist/context/contexts.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

/// How a strategy keeps the copies of its variables: what it names as its `Store`. Variables, optimizers and layers ask it
/// where copies lie and who changes them, and know no store by name.
///
/// `copies(replicas)` says how many copies the replicas of a process have, and `copy_of(local_replica)` which of them one
/// reads; copies are numbered in the order of their first readers. Where replicas share a copy (`shared`), a variable is
/// one value for all of them, whatever its synchronization, and a write in a replica function is one for all.
///
/// In replica functions it also has (MirroredStore is the shortest):
///
/// | operation | what it does |
/// |---|---|
/// | `once(replica, change)` | `change()` on one reader of each copy, while no other uses the copy |
/// | `share_out(replica, count, change)` | after a collective call of all: `change(range)` with this reader's part of `count` things of its copy; all parts are changed when it returns |
/// | `from_first(replica, copy, change)` | `change(copy)` on replica 0, whose values every copy then has |
/// | `update_local_then_average(replica, copy, own, change)` | what `change` returns, called with elements of the replica's own: its copy, or `own` with the values of the copy, which then becomes the mean of all |
///
/// and outside of them `spread(strategy, variable)`, which gives the values of copy 0 to the others of the process.
template <class S>
concept VariableStore = requires(std::size_t count) {
  {std::bool_constant<S::shared>{}};
  { S::copies(count) } -> std::same_as<std::size_t>;
  { S::copy_of(count) } -> std::same_as<std::size_t>;
};

/// One whose variables lie in other processes: the memory of a variable in this process is a cached copy, which the store reads
/// and writes for the operations of the variable. In every context it also has
///
/// | operation | what it does |
/// |---|---|
/// | `await(context, variable, elements)` | waits until these elements of the copy are there |
/// | `change(context, variable)` | says that the copy may be changed where it lies |
/// | `write(context, variable, range, values, update)` | updates these elements where they lie, and in a step the copy, too |
///
/// and in replica functions what optimizers need: see ServerStore.
template <class S>
concept RemoteStore = VariableStore<S> && requires {
  requires S::remote;
};

/// The store of the strategy that context `C` belongs to.
template <class C>
using StoreOf = typename std::remove_cvref_t<C>::Strategy::Store;

/// A strategy: where replicas run, where variables live, how replicas talk. Library code is written against this.
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

/// A strategy whose variables code of the host reads and writes where they are.
template <class S>
concept KeepsVariablesOnHost = Strategy<S> && S::Device::Space::host_accessible;

/// The message for an object of a class, such as "an nn::Metric", that was made without a strategy; `example` shows one that is
/// made with it.
#define DIST_NEEDS_STRATEGY(object, example) \
  object " is made on a strategy, which is its first argument, such as a dist::Default or a dist::Mirrored: " example

namespace detail {
/// A type that is no strategy.
template <class T>
concept NoStrategy = !Strategy<std::remove_reference_t<T>>;
}  // namespace detail

}  // namespace dist
