#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include <dist/context/per_replica.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// The rows that replica `replica` of `replicas` receives of a global batch of `rows`: slices of ceil(rows /
/// replicas), the first ones full, the last ones possibly short or empty (spec I05, I24).
[[nodiscard]] constexpr IndexRange rows_of_replica(std::size_t rows, std::size_t replica,
                                                   std::size_t replicas) noexcept {
  const std::size_t slice = rows / replicas + (rows % replicas != 0 ? 1 : 0);
  const auto boundary = [&](std::size_t slices) { return slice * slices < rows ? slice * slices : rows; };
  return {boundary(replica), boundary(replica + 1)};
}

/// A batched dataset whose every global batch is divided among replicas: each step gives one value per
/// replica, views of its rows that stay valid until the next step.
template <class D>
class DistributedDataset {
  static_assert(is_batched<D>,
                "distribute_dataset splits batches: add | dist::data::batch(global_batch_size) to the dataset");

 public:
  DistributedDataset(D, std::size_t) {}
};

template <Dataset D>
  requires(is_batched<D>)
class DistributedDataset<D> {
 public:
  using Value = PerReplica<RowsOf<ElementOf<D>>>;

  /// Throws InvalidArgument for zero replicas.
  DistributedDataset(D dataset, std::size_t replicas) : dataset_(std::move(dataset)), replicas_(replicas) {
    if (replicas == 0)
      throw InvalidArgument("A dataset is distributed over no replica", "the number of replicas is 0",
                            "Give the strategy a device");
  }

  class Iterator {
   public:
    Iterator(const DistributedDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)), replicas_(dataset.replicas_) {}

    /// As of a dataset's iterator. Throws ShapeMismatch when a batch has features and labels of different
    /// number.
    bool next(Value& values) {
      if (!upstream_.next(batch_)) return false;
      if (values.size() != replicas_) values = Value(replicas_);
      const std::size_t rows = row_count(batch_);
      for (std::size_t replica = 0; replica < replicas_; ++replica) {
        const IndexRange range = rows_of_replica(rows, replica, replicas_);
        values[replica] = rows_of(batch_, range.begin, range.size());
      }
      return true;
    }

   private:
    IteratorOf<D> upstream_;
    ElementOf<D> batch_{};
    std::size_t replicas_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  /// How many global batches, and so steps, one epoch has.
  [[nodiscard]] Cardinality cardinality() const { return dataset_.cardinality(); }
  [[nodiscard]] std::size_t num_replicas() const noexcept { return replicas_; }

  /// Each loop over the same object is a new epoch, as with `DatasetRange`.
  [[nodiscard]] auto begin() { return Cursor<Iterator, Value>{iterate(next_epoch_++)}; }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
  [[nodiscard]] auto epoch(std::uint64_t number) const& { return EpochRange<DistributedDataset, Value>{*this, number}; }
  void epoch(std::uint64_t) const&& = delete;

 private:
  D dataset_;
  std::size_t replicas_;
  std::uint64_t next_epoch_ = 0;
};

template <class D>
DistributedDataset(D, std::size_t) -> DistributedDataset<D>;

}  // namespace dist::data
