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

/// What the replicas of a strategy can do together: values become their reduction on every replica (`all_reduce`), the
/// values of one of them (`broadcast`), or those of all, concatenated (`all_gather`, and `exchange` of one small
/// value), and gradients are reduced and applied in one pass (`reduce_and_apply`). For what must be known of all
/// reduced values before they are applied, such as their norm, the pass has two halves with the same division of the
/// elements among the replicas: each sees the reduction of its shard (`reduce_scatter`), and each changes its shard of
/// what all get (`update_shards`).
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
concept CrossDeviceOps = std::is_empty_v<Ops> && requires {
  { Ops::name } -> std::convertible_to<std::string_view>;
  requires Collectives<typename Ops::template On<C>>;
};

}  // namespace dist
