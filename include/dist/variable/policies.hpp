#pragma once

#include <concepts>
#include <span>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// Synchronization: all copies have the same value; writes in replica functions are aggregated and applied to all (spec
/// G01).
struct OnWrite {
  static constexpr std::string_view name = "OnWrite";
};
/// Synchronization: replicas write their own copies without communication; reads outside replica functions aggregate
/// (spec G01).
struct OnRead {
  static constexpr std::string_view name = "OnRead";
};
/// Synchronization: each element belongs to one replica, which alone stores and changes it, such as optimizer slots.
/// The strategy's `update_shards` and `reduce_and_apply` determine ownership; a derived type may redefine
/// `update_shards`. Requires aggregation None.
struct OnShard {
  static constexpr std::string_view name = "OnShard";

  /// Sets `values[i] = update(i, values[i], given[i])` for the elements that this replica owns, and sends them to the
  /// others. A collective call.
  template <class T>
  static void update_shards(const auto& replica, std::span<const T> given, std::span<T> values, const auto& update) {
    replica.update_shards(given, values, update);
  }
};
/// The default synchronization (spec G01).
using Auto = OnWrite;

/// Aggregation: values of different replicas are never combined (spec G02). Other aggregations are the reduce ops Sum
/// and Mean. Not allowed as a synchronization.
struct None {
  static constexpr std::string_view name = "None";
};
/// Aggregation: replica 0's value is used.
struct OnlyFirstReplica {
  static constexpr std::string_view name = "OnlyFirstReplica";
};

template <class S>
concept Synchronization = std::same_as<S, OnWrite> || std::same_as<S, OnRead> || std::derived_from<S, OnShard>;

template <class A>
concept Aggregation =
    std::same_as<A, None> || std::same_as<A, Sum> || std::same_as<A, Mean> || std::same_as<A, OnlyFirstReplica>;

/// Controls whether optimizers may change a variable: they reject others (spec G03). Assignments are not affected.
enum class Trainable {
  by_synchronization,  ///< OnWrite: yes. OnRead: no, as aggregated state is not trained.
  yes,
  no,
};

namespace detail {

template <class Sync>
inline constexpr bool is_on_shard = std::derived_from<Sync, OnShard>;

/// A readable compile error for each invalid combination in `DistributedVariable<T, Sync, Agg>`.
template <class T, class Sync, class Agg>
constexpr void require_variable_policies() {
  static_assert(satisfied<Reducible<T>>, "a variable holds numbers: f16, bf16, f32, f64, integers or bool");
  static_assert(!std::same_as<Sync, None>,
                "a variable cannot have the synchronization None: use OnWrite for copies that stay equal, or OnRead "
                "for an independent copy on every replica");
  static_assert(satisfied < Synchronization<Sync> || std::same_as < Sync, None >>,
                "a variable's synchronization is Auto, OnWrite or OnRead: name one of them before the aggregation");
  static_assert(satisfied<Aggregation<Agg>>, "a variable's aggregation is None, Sum, Mean or OnlyFirstReplica");
  static_assert(!std::same_as<T, bool> || !(std::same_as<Agg, Sum> || std::same_as<Agg, Mean>),
                "bools are not added: give a bool variable the aggregation None or OnlyFirstReplica, or count in an "
                "integer type");
  static_assert(!std::same_as<Agg, Mean> || Floating<T> || std::same_as<T, bool>,
                "a variable with aggregation Mean must have a floating-point type: an integer mean would round; use "
                "another aggregation or another type");
  static_assert(!is_on_shard<Sync> || std::same_as<Agg, None>,
                "an OnShard variable has the aggregation None: each element belongs to one replica, and nothing is "
                "combined");
}

}  // namespace detail

}  // namespace dist
