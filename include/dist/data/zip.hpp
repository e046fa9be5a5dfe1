#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// The elements of several datasets side by side, as tuples. Made by `zip`.
template <Dataset... Ds>
class ZipDataset : public DatasetRange<ZipDataset<Ds...>> {
 public:
  using Element = std::tuple<ElementOf<Ds>...>;
  /// Batches side by side are a batch.
  static constexpr bool is_batched = (data::is_batched<Ds> && ...);
  static constexpr bool lends_elements = (data::lends_elements<Ds> || ...);

  explicit ZipDataset(Ds... datasets) : datasets_(std::move(datasets)...) {}

  class Iterator {
   public:
    Iterator(const ZipDataset& dataset, std::uint64_t epoch)
        : upstreams_(
              std::apply([&](const Ds&... each) { return Upstreams{each.iterate(epoch)...}; }, dataset.datasets_)) {}

    bool next(Element& element) {
      const bool all = [&]<std::size_t... I>(std::index_sequence<I...>) {
        return (std::get<I>(upstreams_).next(std::get<I>(element)) && ...);
      }
      (std::index_sequence_for<Ds...>{});
      if (all) ++given_;
      return all;
    }

    /// See Resumable.
    [[nodiscard]] std::uint64_t position() const noexcept { return given_; }
    void seek(std::uint64_t position) requires(Resumable<IteratorOf<Ds>>&&...) {
      std::apply([&](auto&... each) { (each.seek(position), ...); }, upstreams_);
      given_ = position;
    }

   private:
    using Upstreams = std::tuple<IteratorOf<Ds>...>;
    Upstreams upstreams_;
    std::uint64_t given_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  /// The cardinality of the shortest dataset.
  [[nodiscard]] Cardinality cardinality() const {
    Cardinality least = Cardinality::infinite();
    std::apply([&](const Ds&... each) { ((least = shorter(least, each.cardinality())), ...); }, datasets_);
    return least;
  }
  /// The batch size of all; not known where they differ, because such batches cannot be divided.
  [[nodiscard]] std::size_t batch_size() const {
    return std::apply(
        [](const auto& first, const auto&... rest) {
          const std::size_t size = known_batch_size(first);
          return ((known_batch_size(rest) == size) && ...) ? size : 0;
        },
        datasets_);
  }
  [[nodiscard]] PartialBatches partial_batches() const {
    PartialBatches most = PartialBatches::none;
    std::apply([&](const Ds&... each) { ((most = std::max(most, partial_batches_of(each))), ...); }, datasets_);
    return most;
  }
  [[nodiscard]] std::tuple<Ds&...> upstreams() noexcept {
    return std::apply([](Ds&... each) { return std::tie(each...); }, datasets_);
  }

 private:
  static Cardinality shorter(Cardinality a, Cardinality b) {
    if (a.is_infinite()) return b;
    if (b.is_infinite()) return a;
    constexpr Cardinality none = Cardinality::known(0);
    if (a == none || b == none) return none;
    if (!a.is_known() || !b.is_known()) return Cardinality::unknown();
    return a.count() < b.count() ? a : b;
  }

  std::tuple<Ds...> datasets_;
};

/// Pairs the elements of datasets: `zip(images, labels)` gives std::tuple<Image, Label>. Ends with the shortest one;
/// the datasets before it in the list are then one element further, which is lost.
template <class... Ds>
[[nodiscard]] auto zip(Ds... datasets) {
  constexpr bool are_datasets = sizeof...(Ds) > 0 && (Dataset<Ds> && ...);
  if constexpr (are_datasets)
    return ZipDataset<Ds...>{std::move(datasets)...};
  else
    static_assert(are_datasets, "zip: every argument must be a dataset, and there must be one at least");
}

}  // namespace dist::data
