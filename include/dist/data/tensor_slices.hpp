#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/example.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// The rows of arrays in memory, as views. Copies of the dataset share the arrays. Made by `tensor_slices`.
template <class Arrays>
class TensorSlices : public DatasetRange<TensorSlices<Arrays>> {
 public:
  using Element = RowOf<Arrays>;

  /// Throws ShapeMismatch if an array has no axes, or if the numbers of features and labels differ.
  explicit TensorSlices(Arrays arrays)
      : count_(row_count(arrays)), arrays_(std::make_shared<const Arrays>(std::move(arrays))) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    explicit Iterator(const TensorSlices& dataset) : dataset_(&dataset) {}

    bool next(Element& element) {
      if (index_ == dataset_->count_) return false;
      element = row_of(*dataset_->arrays_, index_++);
      return true;
    }

    [[nodiscard]] std::uint64_t position() const noexcept { return index_; }
    void seek(std::uint64_t position) {
      index_ = static_cast<std::size_t>(std::min<std::uint64_t>(position, dataset_->count_));
    }

   private:
    const TensorSlices* dataset_;
    std::size_t index_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  [[nodiscard]] Cardinality cardinality() const { return Cardinality::known(count_); }

 private:
  std::size_t count_;
  std::shared_ptr<const Arrays> arrays_;
};

/// A dataset of the rows of `x`: views with one axis less, of rank 0 if `x` has rank 1.
template <class X>
[[nodiscard]] TensorSlices<Tensor<X>> tensor_slices(Tensor<X> x) {
  return TensorSlices<Tensor<X>>{std::move(x)};
}
/// A dataset of examples whose features are the rows of `x` and whose labels are the rows of `y`.
template <class X, class Y>
[[nodiscard]] TensorSlices<Example<Tensor<X>, Tensor<Y>>> tensor_slices(Tensor<X> x, Tensor<Y> y) {
  return TensorSlices<Example<Tensor<X>, Tensor<Y>>>{{std::move(x), std::move(y)}};
}

}  // namespace dist::data
