/// Datasets, loops over them, and pipelines: `source | shuffle(1000) | batch(32)`.
///
/// A dataset is a value that describes a sequence of elements. Every pass over it has a number, its epoch: the same
/// epoch returns the same elements in the same order; another epoch may be shuffled differently (spec I31).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include <dist/core/contract.hpp>
#include <dist/data/batch_size.hpp>

namespace dist::data {

/// One pass over a dataset. `next` assigns the next element and returns true, or returns false from the end on. Pass
/// the same element again to reuse its memory: in the steady state nothing is allocated. An exception ends the pass.
template <class I, class Element>
concept ElementIterator = std::movable<I> && requires(I iterator, Element& element) {
  { iterator.next(element) } -> std::same_as<bool>;
};

/// A sequence of elements that can be iterated any number of times.
///
/// `iterate(epoch)` starts a pass, which refers to the dataset; until it ends the dataset must not move. An element is
/// a value, or contains views that are valid as long as the dataset, unless it `lends_elements`.
///
/// Optional members: `is_batched` and `lends_elements` (see below), `batch_size()` and `partial_batches()` (see
/// batch_size.hpp), `upstream()` or `upstreams()` (see auto_shard.hpp).
template <class D>
concept Dataset = std::move_constructible<D> && std::default_initializable<typename D::Element> &&
    std::movable<typename D::Element> && requires(const D& dataset, std::uint64_t epoch) {
  { dataset.cardinality() } -> std::same_as<Cardinality>;
  { dataset.iterate(epoch) } -> ElementIterator<typename D::Element>;
};

/// The type of the elements of `D`.
template <Dataset D>
using ElementOf = typename D::Element;
/// The type of a pass over `D`.
template <class D>
using IteratorOf = decltype(std::declval<const D&>().iterate(std::uint64_t{}));

/// A dataset with access to its upstream dataset.
template <class D>
concept HasUpstream = requires(D& dataset) {
  dataset.upstream();
};
/// A dataset with access to its upstream datasets, as a tuple of references.
template <class D>
concept HasUpstreams = requires(D& dataset) {
  dataset.upstreams();
};

/// A range that reports its number of elements.
template <class D>
concept HasCardinality = requires(const D& dataset) {
  dataset.cardinality();
};
/// A range whose epochs can be selected by number.
template <class D>
concept HasEpochs = requires(D& dataset, std::uint64_t number) {
  dataset.epoch(number);
};

/// True if the elements of `D` are batches, whose rows can be divided among replicas (spec I02). A dataset declares it
/// by a member `is_batched`; the default is false.
template <class D>
inline constexpr bool is_batched = requires {
  requires D::is_batched;
};

/// True if the elements of `D` are views that expire at the next element of the pass, so that no step may hold two. A
/// dataset declares it by a member `lends_elements`; the default is false.
template <class D>
inline constexpr bool lends_elements = requires {
  requires D::lends_elements;
};

/// Returns the next element of a pass, or nothing at its end (spec I22). Unlike `next`, it reuses no memory.
template <class Element, class I>
  requires ElementIterator<I, Element>
[[nodiscard]] std::optional<Element> next_of(I& iterator) {
  std::optional<Element> element(std::in_place);
  if (!iterator.next(*element)) element.reset();
  return element;
}

/// The C++ input iterator over one pass, for range-based for loops.
template <class Iterator, class Element>
class Cursor {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Element;
  using difference_type = std::ptrdiff_t;

  /// Reads the first element of the pass.
  explicit Cursor(Iterator iterator) : iterator_(std::move(iterator)) { ++*this; }

  [[nodiscard]] const Element& operator*() const noexcept { return element_; }
  [[nodiscard]] const Element* operator->() const noexcept { return &element_; }
  Cursor& operator++() {
    has_element_ = iterator_.next(element_);
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Cursor& cursor, std::default_sentinel_t) noexcept { return !cursor.has_element_; }

 private:
  Iterator iterator_;
  Element element_{};
  bool has_element_ = false;
};

/// The range of one epoch of a dataset, which must outlive it.
template <class D, class Element>
class EpochRange {
 public:
  /// Epoch `epoch` of `dataset`.
  EpochRange(const D& dataset, std::uint64_t epoch) : dataset_(&dataset), epoch_(epoch) {}

  [[nodiscard]] auto begin() const { return Cursor<IteratorOf<D>, Element>{dataset_->iterate(epoch_)}; }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  const D* dataset_;
  std::uint64_t epoch_;
};

/// Adds loops to a dataset: `for (const auto& element : dataset)`. Each loop over the same object is a new epoch, from
/// 0 on; `epoch(n)` is the range of epoch n.
template <class Derived>
class DatasetRange {
 public:
  [[nodiscard]] auto begin() {
    const auto& dataset = static_cast<const Derived&>(*this);
    return Cursor<IteratorOf<Derived>, typename Derived::Element>{dataset.iterate(next_epoch_++)};
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  [[nodiscard]] auto epoch(std::uint64_t number) const& {
    return EpochRange<Derived, typename Derived::Element>{static_cast<const Derived&>(*this), number};
  }
  void epoch(std::uint64_t) const&& = delete;  // the range would outlive its dataset

 private:
  std::uint64_t next_epoch_ = 0;
};

/// Base class of a pipeline step over one dataset, `D`. By default the step has the properties of `D`; batch properties
/// only if its elements are batches. `Derived::Iterator` takes the step and the epoch.
template <class Derived, Dataset D>
class StepDataset : public DatasetRange<Derived> {
 public:
  using Element = ElementOf<D>;
  static constexpr bool is_batched = data::is_batched<D>;
  static constexpr bool lends_elements = data::lends_elements<D>;

  /// A step after `dataset`.
  explicit StepDataset(D dataset) : dataset_(std::move(dataset)) {}

  [[nodiscard]] auto iterate(std::uint64_t epoch) const {
    return typename Derived::Iterator{static_cast<const Derived&>(*this), epoch};
  }
  [[nodiscard]] Cardinality cardinality() const { return dataset_.cardinality(); }
  [[nodiscard]] std::size_t batch_size() const { return Derived::is_batched ? known_batch_size(dataset_) : 0; }
  [[nodiscard]] PartialBatches partial_batches() const {
    return Derived::is_batched ? partial_batches_of(dataset_) : PartialBatches::any;
  }
  [[nodiscard]] D& upstream() noexcept { return dataset_; }

 protected:
  D dataset_;
};

/// A step of a pipeline: `make` turns a dataset into another one.
template <class Make>
struct Pipe {
  Make make;  ///< function of a dataset, which returns the dataset with the step
};
/// Deduces `Make`.
template <class Make>
Pipe(Make) -> Pipe<Make>;

/// Applies a step to a dataset, which is copied or moved into the result.
template <class D, class Make>
[[nodiscard]] auto operator|(D&& dataset, const Pipe<Make>& pipe) {
  constexpr bool is_dataset = Dataset<std::remove_cvref_t<D>>;
  if constexpr (is_dataset)
    return pipe.make(std::remove_cvref_t<D>(std::forward<D>(dataset)));
  else
    static_assert(is_dataset,
                  "the left side of | is not a dataset: begin with a source such as dist::data::tensor_slices(...)");
}

/// A pass that can be resumed: `position()` is the number of elements returned, and `seek(position)` continues after
/// that many elements of the same epoch, under any number of replicas. It avoids reading the skipped elements if
/// possible.
///
/// Resumable are arrays, ranges, rows of CSV, files of tokens, folders of images, and the steps take, skip, zip,
/// enumerate, map and random_map by any number of threads, shuffle, index_shuffle, batch, rebatch and prefetch over
/// these. Not resumable are other files and the steps filter, repeat, concatenate, shard, interleave, unbatch and
/// cache: there, Model::fit reads the skipped elements again.
template <class I>
concept Resumable = requires(I iterator, const I& pass, std::uint64_t position) {
  { pass.position() } -> std::same_as<std::uint64_t>;
  iterator.seek(position);
};

/// A program's position in its passes over a dataset, for checkpoints.
struct Position {
  std::uint64_t epoch = 0;     ///< number of the current pass
  std::uint64_t elements = 0;  ///< returned in this epoch

  void track(auto& visit) {
    visit("epoch", epoch);
    visit("elements", elements);
  }
};

/// The part of a dataset to load.
enum class Split : bool { train, test };

}  // namespace dist::data
