#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/data/dataset.hpp>
#include <dist/data/resumable.hpp>

namespace dist::data {

/// The elements of `D` without the first ones. Made by `skip`.
template <Dataset D>
class SkipDataset : public StepDataset<SkipDataset<D>, D> {
 public:
  SkipDataset(D dataset, std::size_t count) : StepDataset<SkipDataset, D>(std::move(dataset)), count_(count) {}

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

    /// See Resumable. The first elements are not made then.
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

/// Passes over the first `count` elements: they are made, and thrown away, when the first element is asked for.
[[nodiscard]] inline auto skip(std::size_t count) {
  return Pipe{[=]<Dataset D>(D dataset) { return SkipDataset<D>{std::move(dataset), count}; }};
}

}  // namespace dist::data
