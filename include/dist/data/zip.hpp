#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// The elements of several datasets, combined to tuples. Made by `zip`.
template <Dataset... Ds>
class ZipDataset : public DatasetRange<ZipDataset<Ds...>> {
 public:
  using Element = std::tuple<ElementOf<Ds>...>;
  /// A tuple of batches is a batch.
  static constexpr bool is_batched = (data::is_batched<Ds> && ...);
  static constexpr bool lends_elements = (data::lends_elements<Ds> || ...);

  /// The dataset that `zip(datasets...)` makes.
  explicit ZipDataset(Ds... datasets) : datasets_(std::move(datasets)...) {}

  /// One pass over the dataset.
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
  /// The common batch size; 0 (unknown) if the sizes differ, because such batches cannot be divided.
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

/// Combines the elements of datasets: `zip(images, labels)` returns `std::tuple<Image, Label>`. Ends with the shortest
/// dataset; the datasets before it in the list then lose one element.
template <class... Ds>
[[nodiscard]] auto zip(Ds... datasets) {
  constexpr bool are_datasets = sizeof...(Ds) > 0 && (Dataset<Ds> && ...);
  if constexpr (are_datasets)
    return ZipDataset<Ds...>{std::move(datasets)...};
  else
    static_assert(are_datasets, "zip: every argument must be a dataset, and at least one is needed");
}

/// The elements of `D`, each with its number. Made by `enumerate`.
template <Dataset D>
class EnumerateDataset : public StepDataset<EnumerateDataset<D>, D> {
 public:
  using Element = std::tuple<std::int64_t, ElementOf<D>>;
  static constexpr bool is_batched = false;

  /// The step that `enumerate(start)` makes.
  EnumerateDataset(D dataset, std::int64_t start)
      : StepDataset<EnumerateDataset, D>(std::move(dataset)), start_(start) {}

  /// One pass over the dataset.
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

/// Replaces every element by a tuple of its number, counted from `start` in every pass, and the element.
[[nodiscard]] inline auto enumerate(std::int64_t start = 0) {
  return Pipe{[=]<Dataset D>(D dataset) { return EnumerateDataset<D>{std::move(dataset), start}; }};
}

/// The elements of `First`, then the elements of `Second`. Made by `concatenate`.
template <Dataset First, Dataset Second>
class ConcatenateDataset : public DatasetRange<ConcatenateDataset<First, Second>> {
 public:
  using Element = ElementOf<First>;
  static constexpr bool is_batched = data::is_batched<First> && data::is_batched<Second>;
  static constexpr bool lends_elements = data::lends_elements<First> || data::lends_elements<Second>;

  /// The dataset that `concatenate(second)` makes from `first`.
  ConcatenateDataset(First first, Second second) : first_(std::move(first)), second_(std::move(second)) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const ConcatenateDataset& dataset, std::uint64_t epoch)
        : dataset_(&dataset), epoch_(epoch), first_(dataset.first_.iterate(epoch)) {}

    bool next(Element& element) {
      if (first_) {
        if (first_->next(element)) return true;
        first_.reset();
        second_.emplace(dataset_->second_.iterate(epoch_));
      }
      return second_->next(element);
    }

   private:
    const ConcatenateDataset* dataset_;
    std::uint64_t epoch_;
    std::optional<IteratorOf<First>> first_;
    std::optional<IteratorOf<Second>> second_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  [[nodiscard]] Cardinality cardinality() const {
    const Cardinality a = first_.cardinality();
    const Cardinality b = second_.cardinality();
    if (a.is_infinite() || b.is_infinite()) return Cardinality::infinite();
    if (!a.is_known() || !b.is_known()) return Cardinality::unknown();
    if (a.count() > std::numeric_limits<std::size_t>::max() - b.count()) return Cardinality::unknown();
    return Cardinality::known(a.count() + b.count());
  }
  /// The common batch size; 0 (unknown) if the sizes differ.
  [[nodiscard]] std::size_t batch_size() const {
    const std::size_t size = known_batch_size(first_);
    return size == known_batch_size(second_) ? size : 0;
  }
  [[nodiscard]] PartialBatches partial_batches() const {
    return partial_batches_of(first_) == PartialBatches::none ? partial_batches_of(second_) : PartialBatches::any;
  }
  [[nodiscard]] std::tuple<First&, Second&> upstreams() noexcept { return std::tie(first_, second_); }

 private:
  First first_;
  Second second_;
};

/// Appends the elements of `second`, which must have the same type.
template <class Second>
[[nodiscard]] auto concatenate(Second second) {
  return Pipe{[second = std::move(second)]<Dataset First>(First first) {
    constexpr bool same = [] {
      if constexpr (Dataset<Second>) return std::is_same_v<ElementOf<First>, ElementOf<Second>>;
      return false;
    }();
    if constexpr (same)
      return ConcatenateDataset<First, Second>{std::move(first), second};
    else
      static_assert(same, "concatenate: the argument must be a dataset with the same element type");
  }};
}

}  // namespace dist::data
