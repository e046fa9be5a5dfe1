#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include <dist/data/dataset.hpp>

namespace dist::data {

/// The elements of `D`, each with its number. Made by `enumerate`.
template <Dataset D>
class EnumerateDataset : public DatasetRange<EnumerateDataset<D>> {
 public:
  using Element = std::tuple<std::int64_t, ElementOf<D>>;
  static constexpr bool lends_elements = data::lends_elements<D>;

  EnumerateDataset(D dataset, std::int64_t start) : dataset_(std::move(dataset)), start_(start) {}

  class Iterator {
   public:
    Iterator(const EnumerateDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)), number_(dataset.start_) {}

    bool next(Element& element) {
      if (!upstream_.next(std::get<1>(element))) return false;
      std::get<0>(element) = number_++;
      return true;
    }

   private:
    IteratorOf<D> upstream_;
    std::int64_t number_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  [[nodiscard]] Cardinality cardinality() const { return dataset_.cardinality(); }
  [[nodiscard]] D& upstream() noexcept { return dataset_; }

 private:
  D dataset_;
  std::int64_t start_;
};

/// Makes every element a tuple of its number, counted from `start` in every pass, and itself.
[[nodiscard]] inline auto enumerate(std::int64_t start = 0) {
  return Pipe{[=]<Dataset D>(D dataset) { return EnumerateDataset<D>{std::move(dataset), start}; }};
}

}  // namespace dist::data
