#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/comm/communicator.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

namespace detail {
/// In the place of a policy that was not named.
struct NoOps {};

struct ApplyNothing {
  void operator()(std::size_t, std::span<float>, std::span<const float>) const {}
};
struct UseNothing {
  void operator()(std::size_t, std::span<const float>) const {}
};
struct UpdateNothing {
  void operator()(std::size_t, std::span<float>) const {}
};
}  // namespace detail

namespace detail {
template <class Ops, class C>
concept PolicyFor = std::is_empty_v<Ops> && requires {
  { Ops::name } -> std::convertible_to<std::string_view>;
  typename Ops::template On<C>;
};
}  // namespace detail

/// What the replicas of a strategy can do together: values become their reduction on every replica (`all_reduce`), the
/// values of one of them (`broadcast`), or those of all, concatenated (`all_gather`, and `exchange` of one small
/// value), and gradients are reduced and applied in one pass (`reduce_and_apply`). For what must be known of all
/// reduced values before they are applied, such as their norm, the pass has two halves with the same division of the
/// elements among the replicas: each sees the reduction of its shard (`reduce_scatter`), and each changes its shard of
/// what all get (`update_shards`). Nothing is called for a shard without elements.
template <class B>
concept Collectives = requires(const B ops, std::span<float> values, std::span<const std::size_t> counts,
                               detail::ApplyNothing apply, detail::UseNothing use, detail::UpdateNothing update) {
  requires Communicator<std::remove_cvref_t<decltype(ops.communicator())>>;
  ops.all_reduce(sum, values);
  ops.broadcast(std::size_t{0}, values);
  ops.all_gather(std::span<const float>{values}, counts, values);
  ops.exchange("flags", bool{}, std::span<bool>{});
  ops.reduce_and_apply(sum, values, values, apply);
  ops.reduce_scatter(sum, std::span<const float>{values}, use);
  ops.update_shards(values, update);
};

/// A policy that says how collectives are done between the members of a communicator (spec H02): an empty struct with a
/// `name`, whose nested template `On<Communicator>` holds the state. Every policy gives the same bits on every replica
/// and in every run. Values are combined in rank order, so that the bits are those of any other policy, unless `static
/// constexpr bool sums_in_rank_order = false` says that the policy has an order of its own.
template <class Ops, class C>
concept CrossDeviceOps = detail::PolicyFor<Ops, C> && Collectives<typename Ops::template On<C>>;

namespace detail {

/// Whether `Ops` works between members like `C`, as far as it tells: a policy that works between some only has a
/// `template <class C> static constexpr bool fits`, so that it can be asked without an error of its own.
template <class Ops, class C>
inline constexpr bool fits = true;
template <class Ops, class C>
  requires requires { Ops::template fits<C>; }
inline constexpr bool fits<Ops, C> = Ops::template fits<C>;

/// Refuses a policy whose collectives lack an operation, and names it; says whether it has all.
template <class On>
[[nodiscard]] constexpr bool require_operations() {
  constexpr bool all_reduces = requires(const On ops, std::span<float> values) { ops.all_reduce(sum, values); };
  constexpr bool broadcasts = requires(const On ops, std::span<float> values) {
    ops.broadcast(std::size_t{0}, values);
  };
  constexpr bool gathers =
      requires(const On ops, std::span<const float> mine, std::span<const std::size_t> counts, std::span<float> all) {
    ops.all_gather(mine, counts, all);
  };
  constexpr bool exchanges = requires(const On ops) { ops.exchange("flags", bool{}, std::span<bool>{}); };
  constexpr bool applies = requires(const On ops, std::span<float> values, ApplyNothing apply) {
    ops.reduce_and_apply(sum, values, values, apply);
  };
  constexpr bool scatters = requires(const On ops, std::span<const float> values, UseNothing use) {
    ops.reduce_scatter(sum, values, use);
  };
  constexpr bool updates = requires(const On ops, std::span<float> values, UpdateNothing update) {
    ops.update_shards(values, update);
  };
  static_assert(all_reduces, "this policy lacks all_reduce(reduction, values): see the concept dist::Collectives");
  static_assert(broadcasts, "this policy lacks broadcast(root, values): see the concept dist::Collectives");
  static_assert(gathers, "this policy lacks all_gather(mine, counts, all): see the concept dist::Collectives");
  static_assert(exchanges, "this policy lacks exchange(operation, mine, of_all): see the concept dist::Collectives");
  static_assert(applies,
                "this policy lacks reduce_and_apply(reduction, gradients, mirror, update): see the concept "
                "dist::Collectives");
  static_assert(scatters,
                "this policy lacks reduce_scatter(reduction, values, use): see the concept dist::Collectives");
  static_assert(updates, "this policy lacks update_shards(values, update): see the concept dist::Collectives");
  return all_reduces && broadcasts && gathers && exchanges && applies && scatters && updates;
}

}  // namespace detail

}  // namespace dist
