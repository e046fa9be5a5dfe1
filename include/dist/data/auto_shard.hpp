#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/type_traits.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/shard.hpp>

namespace dist::data {

/// A source that can read a subset of its files (spec I08): `shard_files(n, i)` returns the same source with files i, i
/// + n, i + 2n, … of its `num_files()`. Only steps with one upstream dataset may follow it. A list of files that
/// `interleave` opens is such a source: `files({...}) | interleave(...)`.
template <class D>
concept ShardableByFile = Dataset<D> && std::movable<D> && requires(const D& source, std::size_t number) {
  { source.num_files() } -> std::same_as<std::size_t>;
  { source.shard_files(number, number) } -> std::same_as<D>;
};

namespace detail {

template <class D>
[[nodiscard]] auto& source_of(D& dataset) {
  if constexpr (HasUpstream<D>)
    return source_of(dataset.upstream());
  else
    return dataset;
}
template <class D>
using SourceOf = std::remove_reference_t<decltype(source_of(std::declval<D&>()))>;

template <class T>
inline constexpr bool is_shard_dataset = false;
template <class D>
inline constexpr bool is_shard_dataset<ShardDataset<D>> = true;

/// True if `IsWanted::of<Step>` holds for `D` or one of its upstream steps. A step gives access to them by a member
/// `upstream()`, or `upstreams()`, which returns a tuple of references.
template <class D, class IsWanted>
[[nodiscard]] constexpr bool has_step() {
  if constexpr (IsWanted::template of<D>)
    return true;
  else if constexpr (HasUpstreams<D>)
    return []<class... Ds>(const std::tuple<Ds&...>*) {
      return (has_step<Ds, IsWanted>() || ...);
    }(static_cast<const decltype(std::declval<D&>().upstreams())*>(nullptr));
  else if constexpr (HasUpstream<D>)
    return has_step<std::remove_reference_t<decltype(std::declval<D&>().upstream())>, IsWanted>();
  else
    return false;
}
struct IsShard {
  template <class Step>
  static constexpr bool of = is_shard_dataset<Step>;
};
template <class D>
inline constexpr bool has_shard = has_step<D, IsShard>();

/// Throws InvalidArgument if there are fewer files than workers.
void require_files(std::size_t files, std::size_t workers);
/// Throws InvalidArgument: the source, of type `type`, reads no files, or the policy is invalid.
[[noreturn]] void refuse_source(std::string_view type);
[[noreturn]] void refuse_policy(AutoShardPolicy policy);

/// True if the source reads files, at least one per worker.
template <Dataset D>
[[nodiscard]] bool has_files_for(D& dataset, std::size_t num_workers) {
  if constexpr (ShardableByFile<SourceOf<D>>) return source_of(dataset).num_files() >= num_workers;
  return false;
}

template <Dataset D>
void shard_by_file(D& dataset, std::size_t num_workers, std::size_t index) {
  using Source = SourceOf<D>;
  if constexpr (ShardableByFile<Source>) {
    Source& source = source_of(dataset);
    require_files(source.num_files(), num_workers);
    source = source.shard_files(num_workers, index);
  } else {
    refuse_source(dist::detail::type_name<Source>());
  }
}

/// Replaces every `shard(shard_hint)` in the dataset. Does not touch datasets without one: that would give a `cache`
/// new memory.
template <Dataset D>
void shard_by_hint(D& dataset, std::size_t num_workers, std::size_t index) {
  if constexpr (is_shard_dataset<D>)
    if (dataset.is_hint()) dataset.replace_hint(num_workers, index);
  if constexpr (!has_shard<D>)
    return;
  else if constexpr (HasUpstreams<D>)
    std::apply([&](auto&... each) { (shard_by_hint(each, num_workers, index), ...); }, dataset.upstreams());
  else
    shard_by_hint(dataset.upstream(), num_workers, index);
}

/// A step that commutes with sharding: `over(make)` returns the same step over `make(upstream)`.
template <class D, class Make>
concept CommutesWithShard = requires(D dataset, Make make) {
  std::move(dataset).over(make);
};

/// Shards `dataset` by element, before trailing prefetches, so that they run ahead by elements in use, and before a
/// trailing shuffle, so that its buffer holds only this worker's elements (spec I09).
template <Dataset D>
[[nodiscard]] auto shard_by_data(D dataset, std::size_t num_workers, std::size_t index) {
  const auto shard_upstream = [&](auto upstream) { return shard_by_data(std::move(upstream), num_workers, index); };
  if constexpr (CommutesWithShard<D, decltype(shard_upstream)>)
    return std::move(dataset).over(shard_upstream);
  else
    return ShardDataset<D>::of_workers(std::move(dataset), num_workers, index);
}

}  // namespace detail

/// Restricts `dataset` to the data of worker `index` of `num_workers`, if that is done at the source or at a hint.
/// Returns the applied policy; after `data` the caller must keep every `num_workers`-th element. Throws like
/// `auto_shard`.
template <Dataset D>
AutoShardPolicy shard_source(D& dataset, AutoShardPolicy policy, std::size_t num_workers, std::size_t index) {
  detail::require_shard(num_workers, index);
  switch (policy) {
    case AutoShardPolicy::off:
    case AutoShardPolicy::data:
      return policy;
    case AutoShardPolicy::hint:
      detail::shard_by_hint(dataset, num_workers, index);
      return policy;
    case AutoShardPolicy::automatic:
    case AutoShardPolicy::file:
      if (num_workers == 1) return AutoShardPolicy::off;
      if (policy == AutoShardPolicy::automatic && !detail::has_files_for(dataset, num_workers))
        return AutoShardPolicy::data;
      detail::shard_by_file(dataset, num_workers, index);
      return AutoShardPolicy::file;
  }
  detail::refuse_policy(policy);
}

/// The part of `dataset` that worker `index` of `num_workers` reads (spec I07 to I14). The parts are disjoint, because
/// the order depends only on the seed and the epoch. One worker reads everything under every policy (spec I14).
///
/// Throws InvalidArgument if `index` is out of range and, under `file`, if the source reads fewer files than workers.
/// Under `data`, a pass throws InvalidArgument if there are fewer elements than workers.
template <Dataset D>
[[nodiscard]] auto auto_shard(D dataset, AutoShardPolicy policy, std::size_t num_workers, std::size_t index) {
  const bool by_data = shard_source(dataset, policy, num_workers, index) == AutoShardPolicy::data;
  return detail::shard_by_data(std::move(dataset), by_data ? num_workers : 1, by_data ? index : 0);
}

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/auto_shard.ipp>
#endif
