#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// Marks where to divide the data among workers, see `shard(ShardHint)`.
struct ShardHint {};
/// The argument of `shard(shard_hint)`.
inline constexpr ShardHint shard_hint{};

/// Every n-th element of `D`. Made by `shard`.
template <Dataset D>
class ShardDataset : public StepDataset<ShardDataset<D>, D> {
 public:
  /// The step that `shard(num_shards, index)` makes.
  ShardDataset(D dataset, std::size_t num_shards, std::size_t index)
      : StepDataset<ShardDataset, D>(std::move(dataset)), num_shards_(num_shards), index_(index) {}
  /// The shard of worker `index` (spec I09). A pass throws InvalidArgument if any worker has no element.
  [[nodiscard]] static ShardDataset of_workers(D dataset, std::size_t num_workers, std::size_t index) {
    ShardDataset shard{std::move(dataset), num_workers, index};
    shard.must_reach_all_ = num_workers > 1;
    return shard;
  }
  /// The whole dataset, until `replace_hint` is called.
  ShardDataset(D dataset, ShardHint) : StepDataset<ShardDataset, D>(std::move(dataset)), is_hint_(true) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const ShardDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)),
          num_shards_(dataset.num_shards_),
          skip_(dataset.index_),
          must_reach_all_(dataset.must_reach_all_) {}

    bool next(ElementOf<D>& element) {
      for (; skip_ > 0; --skip_)
        if (!read(element)) return false;
      if (!read(element)) return false;
      skip_ = num_shards_ - 1;
      if (must_reach_all_) reach_all();
      return true;
    }

   private:
    /// Reads ahead to the first element of the last shard, to detect a worker without data early.
    void reach_all() {
      ElementOf<D> of_others{};
      for (; seen_ < num_shards_; --skip_) read(of_others);
      must_reach_all_ = false;
    }

    bool read(ElementOf<D>& element) {
      if (upstream_.next(element)) {
        ++seen_;
        return true;
      }
      if (must_reach_all_)
        throw InvalidArgument(
            "Sharding leaves workers without data",
            concat("the dataset that is divided has ", seen_, " elements for ", num_shards_, " workers"),
            "Give every worker an element, or use AutoShardPolicy::off");
      return false;
    }

    IteratorOf<D> upstream_;
    std::size_t num_shards_;
    std::size_t skip_;
    bool must_reach_all_;
    std::size_t seen_ = 0;
  };

  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality all = this->dataset_.cardinality();
    if (!all.is_known()) return all;
    const std::size_t larger = all.count() % num_shards_;  // number of shards with one more element
    return Cardinality::known(all.count() / num_shards_ + (index_ < larger ? 1 : 0));
  }

  /// True if this shard is a hint, for `replace_hint`.
  [[nodiscard]] bool is_hint() const noexcept { return is_hint_; }
  /// Makes this shard `index` of `num_shards`. A pass then throws InvalidArgument if any shard has no element.
  void replace_hint(std::size_t num_shards, std::size_t index) {
    num_shards_ = num_shards;
    index_ = index;
    must_reach_all_ = num_shards_ > 1;  // one worker reads everything (spec I14)
  }

 private:
  std::size_t num_shards_ = 1;
  std::size_t index_ = 0;
  bool is_hint_ = false;
  bool must_reach_all_ = false;
};

namespace detail {

inline void require_shard(std::size_t num_shards, std::size_t index) {
  if (num_shards == 0 || index >= num_shards)
    throw InvalidArgument("The shard does not exist", concat("shard ", index, " of ", num_shards),
                          "Number the shards from 0, and use 1 or more");
}

}  // namespace detail

/// Elements `index`, `index + num_shards`, `index + 2 * num_shards`, … (spec I09). The shards partition the dataset.
/// Throws InvalidArgument if `index` is out of range.
[[nodiscard]] inline auto shard(std::size_t num_shards, std::size_t index) {
  detail::require_shard(num_shards, index);
  return Pipe{[=]<Dataset D>(D dataset) { return ShardDataset<D>{std::move(dataset), num_shards, index}; }};
}
/// Marks where `distribute_dataset` divides the data among workers under AutoShardPolicy::hint (spec I11). Otherwise it
/// is the whole dataset.
[[nodiscard]] inline auto shard(ShardHint hint) {
  return Pipe{[=]<Dataset D>(D dataset) { return ShardDataset<D>{std::move(dataset), hint}; }};
}

}  // namespace dist::data
