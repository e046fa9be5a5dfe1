#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/owned.hpp>
#include <dist/data/rows.hpp>
#include <dist/data/stack.hpp>

namespace dist::data {

/// Consecutive elements of `D` stacked into batches. Made by `batch`.
template <Dataset D>
class BatchDataset : public StepDataset<BatchDataset<D>, D> {
 public:
  using Element = Batched<ElementOf<D>>;
  static constexpr bool is_batched = true;
  static constexpr bool lends_elements = false;

  BatchDataset(D dataset, std::size_t batch_size, Remainder remainder)
      : StepDataset<BatchDataset, D>(std::move(dataset)), batch_size_(batch_size), remainder_(remainder) {}

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
        if (rows == capacity_) grow(batch);
        Rows::place(batch, rows++, row_);
      } while (rows < batch_size_ && upstream_.next(row_));
      if (rows < batch_size_ && remainder_ == Remainder::drop) return false;
      if (rows < capacity_) Rows::trim(batch, rows);
      ++given_;
      return true;
    }

   private:
    using Rows = Stack<ElementOf<D>>;

    void grow(Element& batch) {
      if (capacity_ == most_)
        throw InvalidArgument("A dataset gives more elements than its cardinality says", concat("it said ", capacity_),
                              "Let cardinality() tell the number of elements, or unknown");
      capacity_ = capacity_ < most_ / 2 ? 2 * capacity_ : most_;
      Rows::grow(batch, capacity_);
    }

    IteratorOf<D> upstream_;
    ElementOf<D> row_{};
    std::size_t batch_size_;
    std::size_t most_;
    std::size_t capacity_;  // of the batches to come
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
  /// The rows of the largest batch: a batch size beyond the dataset's must not ask for memory that is never
  /// filled.
  [[nodiscard]] std::size_t most_rows() const {
    const Cardinality rows = this->dataset_.cardinality();
    return rows.is_known() && rows.count() < batch_size_ ? rows.count() : batch_size_;
  }
  /// The rows that a batch has room for at first. Where their number is not known, the batch grows with them.
  [[nodiscard]] std::size_t first_capacity() const {
    constexpr std::size_t guess = 1024;
    const bool is_guessed = this->dataset_.cardinality() == Cardinality::unknown();
    return is_guessed && most_rows() > guess ? guess : most_rows();
  }

  std::size_t batch_size_;
  Remainder remainder_;
};

/// Stacks `batch_size` consecutive elements into one with another, outermost axis. The last batch has fewer
/// rows when the elements do not fill it, unless it is dropped. For a distributed dataset this is the global
/// batch size (spec I01).
///
/// Throws InvalidArgument for a batch size of 0 and, while iterating, ShapeMismatch when elements of one
/// batch differ in shape.
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
                    "map them");
  }};
}

/// The rows of the elements of `D`. Made by `unbatch`.
template <Dataset D>
class UnbatchDataset : public StepDataset<UnbatchDataset<D>, D> {
  using Row = RowOf<ElementOf<D>>;
  /// A batch that is nothing but views outlives its place in the pass, and so do views of its rows.
  static constexpr bool views_rows = std::same_as<RowsOf<ElementOf<D>>, ElementOf<D>>;

 public:
  using Element = std::conditional_t<views_rows, Row, Owned<Row>>;
  static constexpr bool is_batched = false;

  using StepDataset<UnbatchDataset, D>::StepDataset;

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

  /// However many batches there are, their rows are only counted when they are made.
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality batches = this->dataset_.cardinality();
    return batches == Cardinality::known(0) || batches.is_infinite() ? batches : Cardinality::unknown();
  }
};

/// Makes an element of every row of every batch: tensors with one axis less, of rank 0 for batches of numbers. The rows
/// are copies, or views where the batches are nothing but views. Throws, while iterating, ShapeMismatch for an array
/// without axes, and for a batch whose parts differ in their number of rows.
[[nodiscard]] inline auto unbatch() {
  return Pipe{[]<Dataset D>(D dataset) {
    constexpr bool has_rows = HasRows<ElementOf<D>>;
    if constexpr (has_rows)
      return UnbatchDataset<D>{std::move(dataset)};
    else
      static_assert(has_rows, "unbatch: elements must be Tensors, TensorViews, or Examples, tuples or arrays of these");
  }};
}

}  // namespace dist::data
