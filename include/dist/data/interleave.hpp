#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/owned.hpp>

namespace dist::data {

/// The interleaved elements of datasets that a function makes from the elements of `D`. Made by `interleave`.
template <Dataset D, class MakeDataset>
class InterleaveDataset : public DatasetRange<InterleaveDataset<D, MakeDataset>> {
  static_assert(!data::lends_elements<D>,
                "interleave keeps elements for several steps, but these elements are valid for one step only: put "
                "interleave before the dataset is distributed");
  using Inner = std::remove_cvref_t<std::invoke_result_t<const MakeDataset&, const ElementOf<D>&>>;

 public:
  /// Owns its data, because the inner datasets end before the pass does.
  using Element = Owned<ElementOf<Inner>>;
  static constexpr bool is_batched = data::is_batched<Inner>;
  static constexpr bool lends_elements = data::lends_elements<Inner> && std::same_as<Element, ElementOf<Inner>>;

  /// The step that `interleave(make_dataset, cycle_length, block_length)` makes.
  InterleaveDataset(D dataset, MakeDataset make_dataset, std::size_t cycle_length, std::size_t block_length)
      : dataset_(std::move(dataset)),
        make_dataset_(std::move(make_dataset)),
        cycle_length_(cycle_length),
        block_length_(block_length) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const InterleaveDataset& dataset, std::uint64_t epoch)
        : make_dataset_(&dataset.make_dataset_),
          epoch_(epoch),
          block_length_(dataset.block_length_),
          upstream_(dataset.dataset_.iterate(epoch)),
          slots_(dataset.cycle_length_) {}

    bool next(Element& element) {
      while (!exhausted_ || open_ > 0) {
        Slot& slot = slots_[current_];
        if (slot.iterator) {
          if (read(*slot.iterator, element)) {
            if (++in_block_ == block_length_) turn();
            return true;
          }
          slot.close();
          --open_;
          turn();
        } else if (exhausted_) {
          turn();
        } else if (upstream_.next(slot.argument)) {
          slot.open((*make_dataset_)(std::as_const(slot.argument)), epoch_);
          ++open_;
        } else {
          exhausted_ = true;
        }
      }
      return false;
    }

   private:
    /// An open dataset. Owns the argument that the dataset was made from.
    struct Slot {
      ElementOf<D> argument{};
      std::optional<Inner> dataset;
      std::optional<IteratorOf<Inner>> iterator;

      void open(Inner made, std::uint64_t epoch) {
        dataset.emplace(std::move(made));
        iterator.emplace(dataset->iterate(epoch));
      }
      void close() {
        iterator.reset();
        dataset.reset();
      }
    };

    bool read(IteratorOf<Inner>& inner, Element& element) {
      if constexpr (std::same_as<Element, ElementOf<Inner>>) {
        return inner.next(element);
      } else {
        if (!inner.next(viewed_)) return false;
        Owning<ElementOf<Inner>>::copy(element, viewed_);
        return true;
      }
    }

    void turn() {
      in_block_ = 0;
      if (++current_ == slots_.size()) current_ = 0;
    }

    const MakeDataset* make_dataset_;
    std::uint64_t epoch_;
    std::size_t block_length_;
    IteratorOf<D> upstream_;
    std::vector<Slot> slots_;
    ElementOf<Inner> viewed_{};
    std::size_t current_ = 0;
    std::size_t in_block_ = 0;
    std::size_t open_ = 0;
    bool exhausted_ = false;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  /// Unknown unless the upstream dataset is empty.
  [[nodiscard]] Cardinality cardinality() const {
    return dataset_.cardinality() == Cardinality::known(0) ? Cardinality::known(0) : Cardinality::unknown();
  }
  [[nodiscard]] D& upstream() noexcept { return dataset_; }

 private:
  D dataset_;
  MakeDataset make_dataset_;
  std::size_t cycle_length_;
  std::size_t block_length_;
};

/// Makes a dataset from every element and interleaves them: `block_length` consecutive elements of each of
/// `cycle_length` open datasets in turn. A dataset that ends passes its turn on; at its next turn the next dataset is
/// opened in its place. The order is the same as in tf.data (spec I08, I30).
///
/// `make_dataset` is called as const. Its result may refer to its argument, and is iterated in the outer epoch.
/// Elements that are views are copied, because their dataset ends before the pass. Throws InvalidArgument if either
/// length is 0.
template <class MakeDataset>
[[nodiscard]] auto interleave(MakeDataset make_dataset, std::size_t cycle_length, std::size_t block_length = 1) {
  if (cycle_length == 0 || block_length == 0)
    throw InvalidArgument("interleave takes no elements",
                          concat("cycle_length is ", cycle_length, ", block_length is ", block_length),
                          "Use 1 or more of both");
  return Pipe{[make_dataset = std::move(make_dataset), cycle_length, block_length]<Dataset D>(D dataset) {
    constexpr bool makes_dataset = [] {
      if constexpr (std::is_invocable_v<const MakeDataset&, const ElementOf<D>&>)
        return Dataset<std::remove_cvref_t<std::invoke_result_t<const MakeDataset&, const ElementOf<D>&>>>;
      return false;
    }();
    if constexpr (makes_dataset)
      return InterleaveDataset<D, MakeDataset>{std::move(dataset), make_dataset, cycle_length, block_length};
    else
      static_assert(makes_dataset,
                    "interleave: the function must be callable as a const object with an element of the dataset, and "
                    "return a dataset");
  }};
}

/// Makes a dataset from every element, and concatenates their elements.
template <class MakeDataset>
[[nodiscard]] auto flat_map(MakeDataset make_dataset) {
  return interleave(std::move(make_dataset), 1);
}

}  // namespace dist::data
