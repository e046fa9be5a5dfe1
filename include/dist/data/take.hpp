#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/resumable.hpp>

namespace dist::data {

/// The first elements of `D`. Made by `take`.
template <Dataset D>
class TakeDataset : public StepDataset<TakeDataset<D>, D> {
 public:
  TakeDataset(D dataset, std::size_t count) : StepDataset<TakeDataset, D>(std::move(dataset)), count_(count) {}

  class Iterator {
   public:
    Iterator(const TakeDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)), count_(dataset.count_), left_(dataset.count_) {}

    bool next(ElementOf<D>& element) {
      if (left_ == 0 || !upstream_.next(element)) return false;
      --left_;
      return true;
    }

    [[nodiscard]] std::uint64_t position() const requires Resumable<IteratorOf<D>> { return count_ - left_; }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      left_ = count_ - static_cast<std::size_t>(std::min<std::uint64_t>(position, count_));
      upstream_.seek(count_ - left_);
    }

   private:
    IteratorOf<D> upstream_;
    std::size_t count_;
    std::size_t left_;
  };

  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality all = this->dataset_.cardinality();
    if (all.is_infinite() || count_ == 0) return Cardinality::known(count_);
    if (!all.is_known()) return all;
    return Cardinality::known(all.count() < count_ ? all.count() : count_);
  }

 private:
  std::size_t count_;
};

/// Ends after `count` elements, or with the dataset if that has fewer. The dataset is not asked for more than `count`.
[[nodiscard]] inline auto take(std::size_t count) {
  return Pipe{[=]<Dataset D>(D dataset) { return TakeDataset<D>{std::move(dataset), count}; }};
}

}  // namespace dist::data
