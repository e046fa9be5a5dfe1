#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// The first elements of `D`. Made by `take`.
template <Dataset D>
class TakeDataset : public StepDataset<TakeDataset<D>, D> {
 public:
  /// The step that `take(count)` makes.
  TakeDataset(D dataset, std::size_t count) : StepDataset<TakeDataset, D>(std::move(dataset)), count_(count) {}

  /// One pass over the dataset.
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

/// Ends after `count` elements, or with the dataset. Does not read further elements.
[[nodiscard]] inline auto take(std::size_t count) {
  return Pipe{[=]<Dataset D>(D dataset) { return TakeDataset<D>{std::move(dataset), count}; }};
}

/// The elements of `D` without the first ones. Made by `skip`.
template <Dataset D>
class SkipDataset : public StepDataset<SkipDataset<D>, D> {
 public:
  /// The step that `skip(count)` makes.
  SkipDataset(D dataset, std::size_t count) : StepDataset<SkipDataset, D>(std::move(dataset)), count_(count) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const SkipDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)), count_(dataset.count_), left_(dataset.count_) {}

    bool next(ElementOf<D>& element) {
      for (; left_ > 0; --left_)
        if (!upstream_.next(element)) return false;
      if (!upstream_.next(element)) return false;
      ++given_;
      return true;
    }

    /// See Resumable. A seek does not make the first elements.
    [[nodiscard]] std::uint64_t position() const noexcept { return given_; }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      upstream_.seek(count_ + position);
      left_ = 0;
      given_ = position;
    }

   private:
    IteratorOf<D> upstream_;
    std::size_t count_;
    std::size_t left_;
    std::uint64_t given_ = 0;
  };

  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality all = this->dataset_.cardinality();
    if (!all.is_known()) return all;
    return Cardinality::known(all.count() > count_ ? all.count() - count_ : 0);
  }

 private:
  std::size_t count_;
};

/// Skips the first `count` elements: the first call of `next` makes and discards them.
[[nodiscard]] inline auto skip(std::size_t count) {
  return Pipe{[=]<Dataset D>(D dataset) { return SkipDataset<D>{std::move(dataset), count}; }};
}

/// The elements of `D`, repeated; each round is a new epoch of `D`. Made by `repeat`.
template <Dataset D>
class RepeatDataset : public StepDataset<RepeatDataset<D>, D> {
 public:
  /// The number of rounds of `repeat()`.
  static constexpr std::size_t forever = std::numeric_limits<std::size_t>::max();

  /// The step that `repeat(rounds)` makes.
  RepeatDataset(D dataset, std::size_t rounds) : StepDataset<RepeatDataset, D>(std::move(dataset)), rounds_(rounds) {}

  /// One pass over the dataset.
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
    bool empty_ = true;  // true if this round has had no element yet
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
  /// Returns the first inner epoch of an outer epoch. No two outer epochs share an inner one.
  [[nodiscard]] std::uint64_t first_epoch(std::uint64_t epoch) const {
    return rounds_ == forever ? epoch << 32 : epoch * rounds_;
  }

  std::size_t rounds_;
};

/// Repeats the dataset `rounds` times. A shuffled dataset is reshuffled in every round (spec I31).
[[nodiscard]] inline auto repeat(std::size_t rounds) {
  return Pipe{[=]<Dataset D>(D dataset) { return RepeatDataset<D>{std::move(dataset), rounds}; }};
}
/// Repeats the dataset forever, or until a round has no element.
[[nodiscard]] inline auto repeat() {
  return Pipe{[]<Dataset D>(D dataset) { return RepeatDataset<D>{std::move(dataset), RepeatDataset<D>::forever}; }};
}

}  // namespace dist::data
