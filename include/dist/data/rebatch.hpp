#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/rows.hpp>
#include <dist/data/stack.hpp>

namespace dist::data {

/// The rows of the batches of `D` in batches of another size. Made by `rebatch`.
template <Dataset D>
class RebatchDataset : public StepDataset<RebatchDataset<D>, D> {
  using Row = RowOf<ElementOf<D>>;
  using Rows = Stack<Row>;

 public:
  using Element = Batched<Row>;
  static constexpr bool is_batched = true;
  static constexpr bool lends_elements = false;

  RebatchDataset(D dataset, std::size_t batch_size, Remainder remainder)
      : StepDataset<RebatchDataset, D>(std::move(dataset)), batch_size_(batch_size), remainder_(remainder) {}

  class Iterator {
   public:
    Iterator(const RebatchDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)),
          batch_size_(dataset.batch_size_),
          upstream_size_(
              partial_batches_of(dataset.dataset_) == PartialBatches::any ? 0 : known_batch_size(dataset.dataset_)),
          remainder_(dataset.remainder_) {}

    [[nodiscard]] std::uint64_t position() const noexcept { return batches_; }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      std::uint64_t rows = position * batch_size_;
      const std::uint64_t whole_batches = upstream_size_ == 0 ? 0 : rows / upstream_size_;
      upstream_.seek(whole_batches);
      rows -= whole_batches * upstream_size_;
      row_ = rows_ = 0;
      while (rows > 0 && find_row()) {
        const std::size_t skipped = std::min<std::uint64_t>(rows, rows_ - row_);
        row_ += skipped;
        rows -= skipped;
      }
      batches_ = position;
    }

    bool next(Element& batch) {
      if (!find_row()) return false;
      std::size_t capacity = std::min(batch_size_, rows_ - row_);
      std::size_t rows = 0;
      Rows::allocate(batch, row_of(given_, row_), capacity);
      do {
        if (rows == capacity) {
          capacity = std::min(batch_size_, std::max(2 * capacity, capacity + rows_ - row_));
          Rows::grow(batch, capacity);
        }
        Rows::place(batch, rows++, row_of(given_, row_++));
      } while (rows < batch_size_ && find_row());
      if (rows < batch_size_ && remainder_ == Remainder::drop) return false;
      if (rows < capacity) Rows::trim(batch, rows);
      ++batches_;
      return true;
    }

   private:
    /// Goes on to a batch that has a row left. False at the end.
    bool find_row() {
      while (row_ == rows_) {
        if (!upstream_.next(given_)) return false;
        rows_ = row_count(given_);
        row_ = 0;
      }
      return true;
    }

    IteratorOf<D> upstream_;
    ElementOf<D> given_{};
    std::size_t row_ = 0;
    std::size_t rows_ = 0;
    std::uint64_t batches_ = 0;  // given
    std::size_t batch_size_;
    std::size_t upstream_size_;  // of all of its batches but the last; 0 where that is not known
    Remainder remainder_;
  };

  /// Known where all given batches have as many rows as their dataset says.
  [[nodiscard]] Cardinality cardinality() const {
    return detail::groups_of(row_cardinality(), batch_size_, remainder_);
  }
  [[nodiscard]] std::size_t batch_size() const noexcept { return batch_size_; }
  [[nodiscard]] PartialBatches partial_batches() const {
    return detail::partial_batches_of_rows(row_cardinality(), batch_size_, remainder_);
  }

 private:
  [[nodiscard]] Cardinality row_cardinality() const {
    const Cardinality batches = this->dataset_.cardinality();
    if (batches.is_infinite() || batches == Cardinality::known(0)) return batches;
    const std::size_t size = known_batch_size(this->dataset_);
    const bool countable = batches.is_known() && size > 0 &&
                           partial_batches_of(this->dataset_) == PartialBatches::none &&
                           batches.count() <= std::numeric_limits<std::size_t>::max() / size;
    return countable ? Cardinality::known(batches.count() * size) : Cardinality::unknown();
  }

  std::size_t batch_size_;
  Remainder remainder_;
};

/// Makes batches of `batch_size` rows of batches of any size, whose rows keep their order: `unbatch` and `batch` in one
/// step, without copies between. The last batch has fewer rows when they do not fill it, unless it is dropped.
///
/// Throws InvalidArgument for a batch size of 0 and, while iterating, ShapeMismatch when rows of one batch differ in
/// shape, or the parts of a batch in their number of rows.
[[nodiscard]] inline auto rebatch(std::size_t batch_size, Remainder remainder = Remainder::keep) {
  if (batch_size == 0)
    throw InvalidArgument("rebatch has no room for rows", "batch_size is 0", "Use 1 or more rows per batch");
  return Pipe{[=]<Dataset D>(D dataset) {
    constexpr bool has_rows = HasRows<ElementOf<D>>;
    if constexpr (has_rows)
      return RebatchDataset<D>{std::move(dataset), batch_size, remainder};
    else
      static_assert(has_rows, "rebatch: elements must be Tensors, TensorViews, or Examples, tuples or arrays of these");
  }};
}

}  // namespace dist::data
