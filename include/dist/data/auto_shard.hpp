#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/shard.hpp>

namespace dist::data {

/// A source that reads files and can be told to read some of them only (spec I08): `shard_files(n, i)` is the same
/// source with files i, i + n, i + 2n, … of its `num_files()`. It is found through all steps that have one dataset
/// before them. Where `interleave` opens the names of a list, the list is divided: `files({...}) |
/// interleave(...)`.
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

/// Whether `IsWanted::of<Step>` of `D` or of a step that it was made of. A step says what it was made of by a
/// member `upstream()`, or `upstreams()` that gives a tuple of references where these are several.
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

/// True if the source reads files, at least one for each worker.
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
    if (source.num_files() < num_workers)
      throw InvalidArgument("There are fewer files than workers",
                            concat(source.num_files(), " files for ", num_workers, " workers"),
                            "Split the data into more files, or use AutoShardPolicy::data or off");
    source = source.shard_files(num_workers, index);
  } else {
    throw InvalidArgument(
        concat("AutoShardPolicy::file found no files in the source ", dist::detail::type_name<Source>()),
        "it has no members num_files() and shard_files(n, i)", "Read from files, or use AutoShardPolicy::data or off");
  }
}

/// Replaces every `shard(shard_hint)` in the dataset. It looks only where there can be one: a `cache` that
/// may change is one of its own from then on.
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

/// A step that a shard may go before as well as after: `over(make)` is the same step over `make(upstream)`.
template <class D, class Make>
concept CommutesWithShard = requires(D dataset, Make make) {
  std::move(dataset).over(make);
};

/// The shard goes before prefetches at the end, so that they run ahead by what is used, and before a shuffle there,
/// whose buffer then holds nothing but the worker's own elements (spec I09).
template <Dataset D>
[[nodiscard]] auto shard_by_data(D dataset, std::size_t num_workers, std::size_t index) {
  const auto shard_upstream = [&](auto upstream) { return shard_by_data(std::move(upstream), num_workers, index); };
  if constexpr (CommutesWithShard<D, decltype(shard_upstream)>)
    return std::move(dataset).over(shard_upstream);
  else
    return ShardDataset<D>::of_workers(std::move(dataset), num_workers, index);
}

}  // namespace detail

/// Makes `dataset` read what worker `index` of `num_workers` is to read of it, as far as that is decided at its source
/// or at a hint. Returns what was done: `off` if nothing was to be done; `data` when it is left to the caller to keep
/// every W-th element. As `auto_shard` throws.
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
  throw InvalidArgument("There is no such auto-shard policy", concat("its number is ", static_cast<int>(policy)),
                        "Use AutoShardPolicy::off, automatic, file, data or hint");
}

/// The part of `dataset` that worker `index` of `num_workers` reads (spec I07 to I14). Every worker passes over it in
/// the same order, as that depends on nothing but the seed and the epoch, so that the parts are disjoint.
///
/// Throws InvalidArgument for a worker that is not among them and, under `file`, when there are fewer files than workers, or
/// none. A pass throws it under `data` when there are fewer elements than workers. One worker reads everything under every
/// policy (spec I14).
template <Dataset D>
[[nodiscard]] auto auto_shard(D dataset, AutoShardPolicy policy, std::size_t num_workers, std::size_t index) {
  const bool by_data = shard_source(dataset, policy, num_workers, index) == AutoShardPolicy::data;
  return detail::shard_by_data(std::move(dataset), by_data ? num_workers : 1, by_data ? index : 0);
}

}  // namespace dist::data
