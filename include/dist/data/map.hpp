#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/random.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/rows.hpp>

namespace dist::data {

/// The effect of a function on the number of rows of a batch.
enum class RowCount : bool { changes, kept };

template <class Map>
class ParallelMapDataset;

/// The results of a function for every element of `D`. The result for a batch counts as a batch, even without rows to
/// divide. Made by `map`.
template <Dataset D, class Function>
class MapDataset : public StepDataset<MapDataset<D, Function>, D> {
  friend class ParallelMapDataset<MapDataset>;

 public:
  using Element = std::remove_cvref_t<decltype(std::declval<const Function&>()(std::declval<const ElementOf<D>&>()))>;
  static constexpr bool lends_elements = false;

  /// The step that `map(function, rows)` makes.
  MapDataset(D dataset, Function function, RowCount rows)
      : StepDataset<MapDataset, D>(std::move(dataset)), function_(std::move(function)), rows_(rows) {}

  /// Computes an element.
  struct Call {
    const Function* function;  ///< owned by the dataset
    RowCount rows;             ///< the declared effect of the function

    /// Assigns the result for `argument` to `element`. Throws ShapeMismatch if the function changes the number of rows
    /// despite RowCount::kept.
    void operator()(const ElementOf<D>& argument, Element& element, std::uint64_t /*index*/) const {
      element = (*function)(argument);
      if constexpr (HasRows<ElementOf<D>> && HasRows<Element>)
        if (rows == RowCount::kept) require_rows(row_count(element), row_count(argument));
    }

   private:
    static void require_rows(std::size_t rows, std::size_t expected) {
      if (rows != expected)
        throw ShapeMismatch("The function of map changed the number of rows, which RowCount::kept forbids",
                            concat("it made ", rows, " of ", expected), "Leave out RowCount::kept");
    }
  };
  /// Returns the function of an epoch's elements, arguments and indices.
  [[nodiscard]] Call call(std::uint64_t /*epoch*/) const { return {&function_, rows_}; }

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const MapDataset& dataset, std::uint64_t epoch)
        : call_(dataset.call(epoch)), upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(Element& element) {
      if (!upstream_.next(argument_)) return false;
      call_(argument_, element, 0);
      return true;
    }

    [[nodiscard]] std::uint64_t position() const requires Resumable<IteratorOf<D>> { return upstream_.position(); }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> { upstream_.seek(position); }

   private:
    Call call_;
    IteratorOf<D> upstream_;
    ElementOf<D> argument_{};
  };

  /// The batch size of the upstream dataset: a distributed dataset joins rows to such batches again.
  [[nodiscard]] std::size_t batch_size() const { return HasRows<Element> ? known_batch_size(this->dataset_) : 0; }
  [[nodiscard]] PartialBatches partial_batches() const {
    return rows_ == RowCount::kept ? partial_batches_of(this->dataset_) : PartialBatches::any;
  }

 private:
  Function function_;
  RowCount rows_;
};

/// Replaces every element by `function(element)`. `function` is called as const; its result must not refer to its
/// argument.
///
/// After `batch`, RowCount::kept declares that the function keeps the number of rows, so that the number of steps of a
/// distributed dataset is known (spec I27). A pass throws ShapeMismatch otherwise.
template <class Function>
[[nodiscard]] auto map(Function function, RowCount rows = RowCount::changes) {
  return Pipe{[function = std::move(function), rows]<Dataset D>(D dataset) {
    constexpr bool callable = std::is_invocable_v<const Function&, const ElementOf<D>&>;
    if constexpr (callable)
      return MapDataset<D, Function>{std::move(dataset), function, rows};
    else
      static_assert(callable, "map: the function must be callable as a const object with an element of the dataset");
  }};
}

/// The elements of `D` that satisfy a predicate. Made by `filter`.
template <Dataset D, class Predicate>
class FilterDataset : public StepDataset<FilterDataset<D, Predicate>, D> {
 public:
  /// The step that `filter(predicate)` makes.
  FilterDataset(D dataset, Predicate predicate)
      : StepDataset<FilterDataset, D>(std::move(dataset)), predicate_(std::move(predicate)) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const FilterDataset& dataset, std::uint64_t epoch)
        : predicate_(&dataset.predicate_), upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(ElementOf<D>& element) {
      while (upstream_.next(element))
        if ((*predicate_)(std::as_const(element))) return true;
      return false;
    }

   private:
    const Predicate* predicate_;
    IteratorOf<D> upstream_;
  };

  /// Unknown unless the upstream dataset is empty.
  [[nodiscard]] Cardinality cardinality() const {
    return this->dataset_.cardinality() == Cardinality::known(0) ? Cardinality::known(0) : Cardinality::unknown();
  }

 private:
  Predicate predicate_;
};

/// Keeps the elements for which `predicate`, called as const, returns true; after `batch`, whole batches. Never returns
/// if no element of an infinite dataset satisfies the predicate.
template <class Predicate>
[[nodiscard]] auto filter(Predicate predicate) {
  return Pipe{[predicate = std::move(predicate)]<Dataset D>(D dataset) {
    constexpr bool chooses = std::predicate<const Predicate&, const ElementOf<D>&>;
    if constexpr (chooses)
      return FilterDataset<D, Predicate>{std::move(dataset), predicate};
    else
      static_assert(
          chooses,
          "filter: the predicate must be callable as a const object with an element of the dataset, and return a bool");
  }};
}

/// The results of a function with random numbers for every element of `D`. Made by `random_map`.
template <Dataset D, class Function>
class RandomMapDataset : public StepDataset<RandomMapDataset<D, Function>, D> {
  friend class ParallelMapDataset<RandomMapDataset>;
  static_assert(!data::is_batched<D>,
                "random_map: put random_map, random_flip and random_crop before batch, so that each example has its "
                "own random numbers");

 public:
  using Element = std::remove_cvref_t<decltype(std::declval<const Function&>()(std::declval<const ElementOf<D>&>(),
                                                                               std::declval<const RandomStream&>()))>;

  /// The step that `random_map(function, seed)` makes.
  RandomMapDataset(D dataset, Function function, std::uint64_t seed)
      : StepDataset<RandomMapDataset, D>(std::move(dataset)), function_(std::move(function)), seed_(seed) {}

  /// Computes an element.
  struct Call {
    const Function* function;  ///< owned by the dataset
    RandomStream seeds;        ///< gives each element a seed

    /// Assigns the result for `argument` to `element`, with the random numbers of element `index`.
    void operator()(const ElementOf<D>& argument, Element& element, std::uint64_t index) const {
      element = (*function)(argument, RandomStream{seeds.bits(index)});
    }
  };
  /// Returns the function of an epoch's elements, arguments and indices.
  [[nodiscard]] Call call(std::uint64_t epoch) const { return {&function_, RandomStream{seed_, stream_of(epoch)}}; }

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const RandomMapDataset& dataset, std::uint64_t epoch)
        : call_(dataset.call(epoch)), upstream_(dataset.dataset_.iterate(epoch)) {}

    bool next(Element& element) {
      if (!upstream_.next(argument_)) return false;
      call_(argument_, element, index_++);
      return true;
    }

    [[nodiscard]] std::uint64_t position() const requires Resumable<IteratorOf<D>> { return upstream_.position(); }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      upstream_.seek(position);
      index_ = upstream_.position();
    }

   private:
    Call call_;
    IteratorOf<D> upstream_;
    ElementOf<D> argument_{};
    std::uint64_t index_ = 0;
  };

 private:
  /// Returns the stream of random numbers of an epoch, separate from other uses of the same seed.
  static constexpr std::uint64_t stream_of(std::uint64_t epoch) { return std::uint64_t{0x72616E646F6D6D00} ^ epoch; }

  Function function_;
  std::uint64_t seed_;
};

/// Replaces every element by `function(element, random)`. `function` is called as const; its result must not refer to
/// its arguments. `random` is a RandomStream that depends only on `seed`, the epoch and the element's index in the
/// dataset. Before distribution the results are therefore independent of the number of replicas and workers, and of a
/// resumed pass. Exception: under AutoShardPolicy::file, each worker counts only the elements of its files.
template <class Function>
[[nodiscard]] auto random_map(Function function, std::uint64_t seed = 0) {
  return Pipe{[function = std::move(function), seed]<Dataset D>(D dataset) {
    constexpr bool callable = std::is_invocable_v<const Function&, const ElementOf<D>&, const RandomStream&>;
    if constexpr (callable)
      return RandomMapDataset<D, Function>{std::move(dataset), function, seed};
    else
      static_assert(callable,
                    "random_map: the function must be callable as a const object with an element of the dataset and a "
                    "dist::RandomStream");
  }};
}

}  // namespace dist::data
