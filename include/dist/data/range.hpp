#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// Integers in equal steps. Made by `range`.
class RangeDataset : public DatasetRange<RangeDataset> {
 public:
  using Element = std::int64_t;

  /// The numbers `start`, `start` + `step`, …: `count` of them.
  RangeDataset(std::int64_t start, std::uint64_t count, std::int64_t step)
      : start_(start), count_(count), step_(step) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    explicit Iterator(const RangeDataset& dataset) : dataset_(&dataset) {}

    bool next(std::int64_t& element) {
      if (index_ == dataset_->count_) return false;
      // Computed modulo 2^64: the results are in the range, so they fit.
      element = static_cast<std::int64_t>(static_cast<std::uint64_t>(dataset_->start_) +
                                          index_ * static_cast<std::uint64_t>(dataset_->step_));
      ++index_;
      return true;
    }

    [[nodiscard]] std::uint64_t position() const noexcept { return index_; }
    void seek(std::uint64_t position) { index_ = std::min(position, dataset_->count_); }

   private:
    const RangeDataset* dataset_;
    std::uint64_t index_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  [[nodiscard]] Cardinality cardinality() const { return Cardinality::known(std::size_t{count_}); }

 private:
  std::int64_t start_;
  std::uint64_t count_;
  std::int64_t step_;
};

/// The integers from `start` (inclusive) to `stop` (exclusive), ascending, or descending if `step` is negative. Throws
/// InvalidArgument if `step` is 0.
[[nodiscard]] inline RangeDataset range(std::int64_t start, std::int64_t stop, std::int64_t step = 1) {
  if (step == 0) throw InvalidArgument("range does not advance", "step is 0", "Give a positive or a negative step");
  const bool up = step > 0;
  if (up ? start >= stop : start <= stop) return {start, 0, step};
  const std::uint64_t from = static_cast<std::uint64_t>(start);
  const std::uint64_t to = static_cast<std::uint64_t>(stop);
  const std::uint64_t distance = up ? to - from : from - to;
  const std::uint64_t stride =
      up ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
  return {start, (distance - 1) / stride + 1, step};
}
/// The integers 0, 1, …, `stop` - 1.
[[nodiscard]] inline RangeDataset range(std::int64_t stop) { return range(0, stop); }

}  // namespace dist::data
