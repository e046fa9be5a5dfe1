#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include <dist/data/dataset.hpp>

namespace dist::data {

/// The elements of `D`, each with its number. Made by `enumerate`.
template <Dataset D>
class EnumerateDataset : public StepDataset<EnumerateDataset<D>, D> {
 public:
  using Element = std::tuple<std::int64_t, ElementOf<D>>;
  static constexpr bool is_batched = false;

  EnumerateDataset(D dataset, std::int64_t start)
      : StepDataset<EnumerateDataset, D>(std::move(dataset)), start_(start) {}

  class Iterator {
   public:
    Iterator(const EnumerateDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)), start_(dataset.start_), number_(dataset.start_) {}

    bool next(Element& element) {
      if (!upstream_.next(std::get<1>(element))) return false;
      std::get<0>(element) = number_++;
      return true;
    }

    /// See Resumable.
    [[nodiscard]] std::uint64_t position() const requires Resumable<IteratorOf<D>> { return upstream_.position(); }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      upstream_.seek(position);
      number_ = start_ + static_cast<std::int64_t>(position);
    }

   private:
    IteratorOf<D> upstream_;
    std::int64_t start_;
    std::int64_t number_;
  };

 private:
  std::int64_t start_;
};

/// Makes every element a tuple of its number, counted from `start` in every pass, and itself.
[[nodiscard]] inline auto enumerate(std::int64_t start = 0) {
  return Pipe{[=]<Dataset D>(D dataset) { return EnumerateDataset<D>{std::move(dataset), start}; }};
}

}  // namespace dist::data
