/// What a dataset is, how it is looped over, and how datasets are piped: `source | shuffle(1000) | batch(32)`.
///
/// A dataset is a value that describes a sequence of elements. Nothing is read until it is iterated, and
/// every iteration is one pass with a number, its epoch: the same epoch gives the same elements in the same
/// order, another epoch may shuffle them otherwise (spec I31).
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

/// One pass over a dataset. `next` writes the next element over the caller's and returns true, or returns
/// false at the end and ever after. The caller hands in the same element again and again, so that its memory
/// is reused: a steady state does not allocate. What `next` throws ends the pass.
template <class I, class Element>
concept ElementIterator = std::movable<I> && requires(I iterator, Element& element) {
  { iterator.next(element) } -> std::same_as<bool>;
};

/// A sequence of elements that can be passed over any number of times.
///
/// `iterate(epoch)` starts a pass; its iterator refers to the dataset, which must neither move nor end before
/// it. An element is a value, or holds views that stay valid as long as the dataset, unless it `lends_elements`.
///
/// A dataset may say more of itself: `is_batched` and `lends_elements` below, `batch_size()` and `partial_batches()` of
/// its batches (see batch_size.hpp), and what it was made of by `upstream()`, or `upstreams()` where that is several
/// datasets (see auto_shard.hpp).
template <class D>
concept Dataset = std::move_constructible<D> && std::default_initializable<typename D::Element> &&
    std::movable<typename D::Element> && requires(const D& dataset, std::uint64_t epoch) {
  { dataset.cardinality() } -> std::same_as<Cardinality>;
  { dataset.iterate(epoch) } -> ElementIterator<typename D::Element>;
};

template <Dataset D>
using ElementOf = typename D::Element;
template <class D>
using IteratorOf = decltype(std::declval<const D&>().iterate(std::uint64_t{}));

/// What a dataset was made of.
template <class D>
concept HasUpstream = requires(D& dataset) {
  dataset.upstream();
};
template <class D>
concept HasUpstreams = requires(D& dataset) {
  dataset.upstreams();
};

/// What tells how many elements a pass has, and what gives its epochs by number. Datasets and distributed datasets do;
/// what else can be looped over need not.
template <class D>
concept HasCardinality = requires(const D& dataset) {
  dataset.cardinality();
};
template <class D>
concept HasEpochs = requires(D& dataset, std::uint64_t number) {
  dataset.epoch(number);
};

/// Whether the elements of `D` are batches, whose rows can be divided among replicas (spec I02). A dataset
/// says so by a member `is_batched`; one that does not is not batched.
template <class D>
inline constexpr bool is_batched = requires {
  requires D::is_batched;
};

/// Whether the elements of `D` are views that end at the next element of the pass, so that no step may hold two of
/// them. A dataset says so by a member `lends_elements`; the elements of one that does not stay.
template <class D>
inline constexpr bool lends_elements = requires {
  requires D::lends_elements;
};

/// The next element of a pass, or none at its end (spec I22). For loops that end on another condition than the data;
/// reuses no memory, unlike `next`.
template <class Element, class I>
  requires ElementIterator<I, Element>
[[nodiscard]] std::optional<Element> next_of(I& iterator) {
  std::optional<Element> element(std::in_place);
  if (!iterator.next(*element)) element.reset();
  return element;
}

/// The C++ input iterator over one pass: what a range-based for loop holds. The element lives in it and is
/// reused.
template <class Iterator, class Element>
class Cursor {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Element;
  using difference_type = std::ptrdiff_t;

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

/// The range of one epoch of a dataset that outlives it.
template <class D, class Element>
class EpochRange {
 public:
  EpochRange(const D& dataset, std::uint64_t epoch) : dataset_(&dataset), epoch_(epoch) {}

  [[nodiscard]] auto begin() const { return Cursor<IteratorOf<D>, Element>{dataset_->iterate(epoch_)}; }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  const D* dataset_;
  std::uint64_t epoch_;
};

/// Gives a dataset its loops: `for (const auto& element : dataset)`. Each loop over the same object is a new
/// epoch, the first one epoch 0; `epoch(n)` is the range of a certain one.
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

/// The base of what a step makes of one dataset, `D`. What `Derived` does not say of itself is what `D` says; of batches, as
/// long as its elements are batches. Its class `Iterator` is made of it and the epoch.
template <class Derived, Dataset D>
class StepDataset : public DatasetRange<Derived> {
 public:
  using Element = ElementOf<D>;
  static constexpr bool is_batched = data::is_batched<D>;
  static constexpr bool lends_elements = data::lends_elements<D>;

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

/// A step of a pipe: `make` turns a dataset into another one.
template <class Make>
struct Pipe {
  Make make;
};
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

/// A pass over a dataset that can be taken up again: `position()` is how many elements it has given, and `seek(position)`
/// makes it go on as if it had given so many, of the same epoch, under whatever number of replicas. What lies before is
/// not read again where that can be avoided.
///
/// Arrays, ranges, rows of CSV and folders of images have such passes; so have take, skip, zip, enumerate, map, random_map,
/// shuffle, batch, rebatch and prefetch of what has. Other files have not, nor have filter, repeat, concatenate, shard,
/// interleave, unbatch and cache: there, Model::fit reads again what lies before.
template <class I>
concept Resumable = requires(I iterator, const I& pass, std::uint64_t position) {
  { pass.position() } -> std::same_as<std::uint64_t>;
  iterator.seek(position);
};

/// Where a program is in its passes over a dataset, to be kept with what else outlives a run.
struct Position {
  std::uint64_t epoch = 0;
  std::uint64_t elements = 0;  ///< given in this epoch

  void track(auto& visit) {
    visit("epoch", epoch);
    visit("elements", elements);
  }
};

/// Which part of a dataset.
enum class Split : bool { train, test };

}  // namespace dist::data
