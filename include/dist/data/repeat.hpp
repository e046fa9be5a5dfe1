#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// The elements of `D` again and again, each round a new epoch of `D`. Made by `repeat`.
template <Dataset D>
class RepeatDataset : public StepDataset<RepeatDataset<D>, D> {
 public:
  static constexpr std::size_t forever = std::numeric_limits<std::size_t>::max();

  RepeatDataset(D dataset, std::size_t rounds) : StepDataset<RepeatDataset, D>(std::move(dataset)), rounds_(rounds) {}

  class Iterator {
   public:
    Iterator(const RepeatDataset& dataset, std::uint64_t epoch)
        : dataset_(&dataset.dataset_),
          first_epoch_(dataset.first_epoch(epoch)),
          rounds_(dataset.rounds_),
          upstream_(dataset_->iterate(first_epoch_)) {}

    bool next(ElementOf<D>& element) {
      while (round_ < rounds_) {
        if (upstream_.next(element)) {
          empty_ = false;
          return true;
        }
        if (empty_ && rounds_ == forever)
          round_ = rounds_;  // the search for an element might never end
        else if (++round_ < rounds_)
          upstream_ = dataset_->iterate(first_epoch_ + round_);
        empty_ = true;
      }
      return false;
    }

   private:
    const D* dataset_;
    std::uint64_t first_epoch_;
    std::size_t rounds_;
    IteratorOf<D> upstream_;
    std::size_t round_ = 0;
    bool empty_ = true;  // this round, so far
  };

  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality once = this->dataset_.cardinality();
    if (rounds_ == 0 || once == Cardinality::known(0)) return Cardinality::known(0);
    if (rounds_ == forever || once.is_infinite()) return Cardinality::infinite();
    if (!once.is_known() || once.count() > forever / rounds_) return Cardinality::unknown();
    return Cardinality::known(once.count() * rounds_);
  }
  [[nodiscard]] PartialBatches partial_batches() const { return reordered_partial_batches_of(this->dataset_); }

 private:
  /// The first inner epoch of an outer one, such that no two outer epochs share an inner one.
  [[nodiscard]] std::uint64_t first_epoch(std::uint64_t epoch) const {
    return rounds_ == forever ? epoch << 32 : epoch * rounds_;
  }

  std::size_t rounds_;
};

/// Repeats the dataset `rounds` times; every round is shuffled anew where the dataset shuffles (spec I31).
[[nodiscard]] inline auto repeat(std::size_t rounds) {
  return Pipe{[=]<Dataset D>(D dataset) { return RepeatDataset<D>{std::move(dataset), rounds}; }};
}
/// Repeats the dataset for ever, or until a round has no element.
[[nodiscard]] inline auto repeat() {
  return Pipe{[]<Dataset D>(D dataset) { return RepeatDataset<D>{std::move(dataset), RepeatDataset<D>::forever}; }};
}

}  // namespace dist::data
