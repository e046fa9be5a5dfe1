#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/owned.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// Consecutive elements of `D`, stacked into batches. Made by `batch`.
template <Dataset D>
class BatchDataset : public StepDataset<BatchDataset<D>, D> {
 public:
  using Element = Batched<ElementOf<D>>;
  static constexpr bool is_batched = true;
  static constexpr bool lends_elements = false;

  /// The step that `batch(batch_size, remainder)` makes.
  BatchDataset(D dataset, std::size_t batch_size, Remainder remainder)
      : StepDataset<BatchDataset, D>(std::move(dataset)), batch_size_(batch_size), remainder_(remainder) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const BatchDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)),
          batch_size_(dataset.batch_size_),
          most_(dataset.most_rows()),
          capacity_(dataset.first_capacity()),
          remainder_(dataset.remainder_) {}

    [[nodiscard]] std::uint64_t position() const noexcept { return given_; }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      upstream_.seek(position * batch_size_);
      given_ = position;
    }

    bool next(Element& batch) {
      if (!upstream_.next(row_)) return false;
      Rows::allocate(batch, row_, capacity_);
      std::size_t rows = 0;
      do {
        if (rows == capacity_) Rows::grow(batch, capacity_ = detail::larger_capacity(capacity_, most_));
        Rows::place(batch, rows++, row_);
      } while (rows < batch_size_ && upstream_.next(row_));
      if (rows < batch_size_ && remainder_ == Remainder::drop) return false;
      if (rows < capacity_) Rows::trim(batch, rows);
      ++given_;
      return true;
    }

   private:
    using Rows = Stack<ElementOf<D>>;

    IteratorOf<D> upstream_;
    ElementOf<D> row_{};
    std::size_t batch_size_;
    std::size_t most_;
    std::size_t capacity_;  // of the next batches
    Remainder remainder_;
    std::uint64_t given_ = 0;
  };

  [[nodiscard]] Cardinality cardinality() const {
    return detail::groups_of(this->dataset_.cardinality(), batch_size_, remainder_);
  }
  [[nodiscard]] std::size_t batch_size() const noexcept { return batch_size_; }
  [[nodiscard]] PartialBatches partial_batches() const {
    return detail::partial_batches_of_rows(this->dataset_.cardinality(), batch_size_, remainder_);
  }

 private:
  /// The number of rows of the largest batch, for batch sizes above the size of the dataset.
  [[nodiscard]] std::size_t most_rows() const {
    const Cardinality rows = this->dataset_.cardinality();
    return rows.is_known() && rows.count() < batch_size_ ? rows.count() : batch_size_;
  }
  /// The initial capacity of a batch in rows. If their number is unknown, the batch grows.
  [[nodiscard]] std::size_t first_capacity() const {
    constexpr std::size_t guess = 1024;
    const bool is_guessed = this->dataset_.cardinality() == Cardinality::unknown();
    return is_guessed && most_rows() > guess ? guess : most_rows();
  }

  std::size_t batch_size_;
  Remainder remainder_;
};

/// Stacks `batch_size` consecutive elements along a new outermost axis. The last batch may be smaller; Remainder::drop
/// drops it then. For a distributed dataset this is the global batch size (spec I01).
///
/// Throws InvalidArgument if the batch size is 0. A pass throws ShapeMismatch if the elements of a batch differ in
/// shape.
[[nodiscard]] inline auto batch(std::size_t batch_size, Remainder remainder = Remainder::keep) {
  if (batch_size == 0)
    throw InvalidArgument("batch has no room for elements", "batch_size is 0", "Use 1 or more elements per batch");
  return Pipe{[=]<Dataset D>(D dataset) {
    constexpr bool stackable = Stackable<ElementOf<D>>;
    if constexpr (stackable)
      return BatchDataset<D>{std::move(dataset), batch_size, remainder};
    else
      static_assert(stackable,
                    "batch: elements must be numbers, Tensors, TensorViews, or Examples, tuples or arrays of these: "
                    "convert them with map");
  }};
}

/// The rows of the elements of `D`. Made by `unbatch`.
template <Dataset D>
class UnbatchDataset : public StepDataset<UnbatchDataset<D>, D> {
  using Row = RowOf<ElementOf<D>>;
  /// True if a batch consists of views only: its rows are then views that outlive it.
  static constexpr bool views_rows = std::same_as<RowsOf<ElementOf<D>>, ElementOf<D>>;

 public:
  using Element = std::conditional_t<views_rows, Row, Owned<Row>>;
  static constexpr bool is_batched = false;

  using StepDataset<UnbatchDataset, D>::StepDataset;

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const UnbatchDataset& dataset, std::uint64_t epoch) : upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(Element& element) {
      while (row_ == rows_) {
        if (!upstream_.next(batch_)) return false;
        rows_ = row_count(batch_);
        row_ = 0;
      }
      if constexpr (views_rows)
        element = row_of(batch_, row_++);
      else
        Owning<Row>::copy(element, row_of(batch_, row_++));
      return true;
    }

   private:
    IteratorOf<D> upstream_;
    ElementOf<D> batch_{};
    std::size_t rows_ = 0;
    std::size_t row_ = 0;
  };

  /// Unknown unless the dataset is empty or infinite.
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality batches = this->dataset_.cardinality();
    return batches == Cardinality::known(0) || batches.is_infinite() ? batches : Cardinality::unknown();
  }
};

/// Splits every batch into its rows: tensors with one axis less. The rows are copies, or views if the batches consist
/// of views only. A pass throws ShapeMismatch if an array has no axes, or if the parts of a batch differ in their
/// number of rows.
[[nodiscard]] inline auto unbatch() {
  return Pipe{[]<Dataset D>(D dataset) {
    constexpr bool has_rows = HasRows<ElementOf<D>>;
    if constexpr (has_rows)
      return UnbatchDataset<D>{std::move(dataset)};
    else
      static_assert(has_rows, "unbatch: elements must be Tensors, TensorViews, or Examples, tuples or arrays of these");
  }};
}

/// The rows of the batches of `D`, in batches of another size. Made by `rebatch`.
template <Dataset D>
class RebatchDataset : public StepDataset<RebatchDataset<D>, D> {
  using Row = RowOf<ElementOf<D>>;
  using Rows = Stack<Row>;

 public:
  using Element = Batched<Row>;
  static constexpr bool is_batched = true;
  static constexpr bool lends_elements = false;

  /// The step that `rebatch(batch_size, remainder)` makes.
  RebatchDataset(D dataset, std::size_t batch_size, Remainder remainder)
      : StepDataset<RebatchDataset, D>(std::move(dataset)), batch_size_(batch_size), remainder_(remainder) {}

  /// One pass over the dataset.
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
    /// Advances to the next batch with an unread row. Returns false at the end.
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
    std::uint64_t batches_ = 0;  // number of batches returned
    std::size_t batch_size_;
    std::size_t upstream_size_;  // rows of every upstream batch except the last; 0 if unknown
    Remainder remainder_;
  };

  /// Known if all upstream batches have the batch size of their dataset.
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

/// Regroups the rows of batches of any size into batches of `batch_size` rows: `unbatch` and `batch` in one step,
/// without intermediate copies. The last batch may be smaller; Remainder::drop drops it then.
///
/// Throws InvalidArgument if the batch size is 0. A pass throws ShapeMismatch if the rows of a batch differ in shape,
/// or its parts in their number of rows.
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

/// The elements of `D`, declared as batches. Made by `as_batches`.
template <Dataset D>
class AsBatchesDataset : public StepDataset<AsBatchesDataset<D>, D> {
 public:
  static constexpr bool is_batched = true;

  /// The step that `as_batches(batch_size)` makes; 0: unknown.
  AsBatchesDataset(D dataset, std::size_t batch_size)
      : StepDataset<AsBatchesDataset, D>(std::move(dataset)), batch_size_(batch_size) {}

  [[nodiscard]] auto iterate(std::uint64_t epoch) const { return this->dataset_.iterate(epoch); }
  [[nodiscard]] std::size_t batch_size() const noexcept { return batch_size_; }
  [[nodiscard]] PartialBatches partial_batches() const {
    return known_batch_size(this->dataset_) == batch_size_ ? partial_batches_of(this->dataset_) : PartialBatches::any;
  }

 private:
  std::size_t batch_size_;
};

/// Declares that the elements are batches, e.g. of a generator. `batch_size` is the number of rows of a full batch;
/// with 0 (unknown) every batch is divided separately (spec I02, I05).
[[nodiscard]] inline auto as_batches(std::size_t batch_size = 0) {
  return Pipe{[=]<Dataset D>(D dataset) {
    constexpr bool has_rows = HasRows<ElementOf<D>>;
    if constexpr (has_rows)
      return AsBatchesDataset<D>{std::move(dataset), batch_size};
    else
      static_assert(has_rows,
                    "as_batches: elements must be Tensors, TensorViews, or Examples, tuples or arrays of these");
  }};
}

}  // namespace dist::data
