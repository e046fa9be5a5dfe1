#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// Synchronization: the replicas' copies hold the same value; a write in a replica function is aggregated and applied
/// to all (spec G01).
struct OnWrite {
  static constexpr std::string_view name = "OnWrite";
};
/// Synchronization: each replica writes its own copy without communication; reading outside replica functions
/// aggregates (spec G01).
struct OnRead {
  static constexpr std::string_view name = "OnRead";
};
/// Synchronization: each element belongs to one replica, which alone keeps and changes it, as the slots of an optimizer
/// do. Which one it is, the strategy's `update_shards` and `reduce_and_apply` say for arrays of that size; a type derived
/// from this one may say it otherwise, by its own `update_shards`. With aggregation None.
struct OnShard {
  static constexpr std::string_view name = "OnShard";

  /// `values[i] = update(i, values[i], given[i])` for the elements that this replica owns, which go to the others. A
  /// collective call.
  template <class T>
  static void update_shards(const auto& replica, std::span<const T> given, std::span<T> values, const auto& update) {
    replica.update_shards(given, values, update);
  }
};
/// The synchronization of a variable that does not ask for one (spec G01).
using Auto = OnWrite;

/// Aggregation: values of different replicas are never combined (spec G02). Sum and Mean are the reduce ops. As a
/// synchronization it is refused: copies that nothing relates are no variable.
struct None {
  static constexpr std::string_view name = "None";
};
/// Aggregation by taking replica 0's value.
struct OnlyFirstReplica {
  static constexpr std::string_view name = "OnlyFirstReplica";
};

template <class S>
concept Synchronization = std::same_as<S, OnWrite> || std::same_as<S, OnRead> || std::derived_from<S, OnShard>;

template <class A>
concept Aggregation =
    std::same_as<A, None> || std::same_as<A, Sum> || std::same_as<A, Mean> || std::same_as<A, OnlyFirstReplica>;

/// Whether a variable is given to optimizers to change: they refuse one that is not trainable (spec G03). Assignments
/// do not ask.
enum class Trainable {
  by_synchronization,  ///< OnWrite: yes. OnRead: no, as state that is aggregated on reading is not trained.
  yes,
  no,
};

namespace detail {

template <class Sync>
inline constexpr bool is_on_shard = std::derived_from<Sync, OnShard>;

/// One sentence for each way in which `DistributedVariable<T, Sync, Agg>` cannot be.
template <class T, class Sync, class Agg>
constexpr void require_variable_policies() {
  static_assert(satisfied<Reducible<T>>, "a variable holds numbers: f16, bf16, f32, f64, integers or bool");
  static_assert(
      !std::same_as<Sync, None>,
      "a variable cannot have the synchronization None: use OnWrite for copies that stay equal, or OnRead for a "
      "copy of its own on every replica");
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
