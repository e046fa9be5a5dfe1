#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <dist/core/random.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// Every element of `D` passed through a function with random numbers of its own. Made by `random_map`.
template <Dataset D, class Function>
class RandomMapDataset : public StepDataset<RandomMapDataset<D, Function>, D> {
  static_assert(
      !data::is_batched<D>,
      "random_map: put it, random_flip and random_crop before batch, so that each example has random numbers of "
      "its own");

 public:
  using Element = std::remove_cvref_t<decltype(std::declval<const Function&>()(std::declval<const ElementOf<D>&>(),
                                                                               std::declval<const RandomStream&>()))>;

  RandomMapDataset(D dataset, Function function, std::uint64_t seed)
      : StepDataset<RandomMapDataset, D>(std::move(dataset)), function_(std::move(function)), seed_(seed) {}

  class Iterator {
   public:
    Iterator(const RandomMapDataset& dataset, std::uint64_t epoch)
        : function_(&dataset.function_),
          upstream_(dataset.dataset_.iterate(epoch)),
          seeds_(dataset.seed_, stream_of(epoch)) {}

    bool next(Element& element) {
      if (!upstream_.next(argument_)) return false;
      element = (*function_)(std::as_const(argument_), RandomStream{seeds_.bits(index_)});
      ++index_;
      return true;
    }

    [[nodiscard]] std::uint64_t position() const requires Resumable<IteratorOf<D>> { return upstream_.position(); }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      upstream_.seek(position);
      index_ = upstream_.position();
    }

   private:
    /// A part of the seed's streams that other users of the same seed do not touch.
    static constexpr std::uint64_t stream_of(std::uint64_t epoch) { return std::uint64_t{0x72616E646F6D6D00} ^ epoch; }

    const Function* function_;
    IteratorOf<D> upstream_;
    RandomStream seeds_;  // of the elements' streams
    ElementOf<D> argument_{};
    std::uint64_t index_ = 0;
  };

 private:
  Function function_;
  std::uint64_t seed_;
};

/// Passes every element through `function(element, random)`, which is called as a constant and gives a value that does not
/// refer to its arguments: `random` is a RandomStream that depends on `seed`, the epoch and the element's number in the
/// dataset, and on nothing else. Before the dataset is distributed, elements are therefore changed in the same way
/// whatever the number of replicas and workers, and wherever a pass is taken up; only workers that read files of their own
/// (AutoShardPolicy::file) count the elements of these.
template <class Function>
[[nodiscard]] auto random_map(Function function, std::uint64_t seed = 0) {
  return Pipe{[function = std::move(function), seed]<Dataset D>(D dataset) {
    constexpr bool callable = std::is_invocable_v<const Function&, const ElementOf<D>&, const RandomStream&>;
    if constexpr (callable)
      return RandomMapDataset<D, Function>{std::move(dataset), function, seed};
    else
      static_assert(callable,
                    "random_map: the function must be callable, as a constant, with an element of the dataset and a "
                    "dist::RandomStream");
  }};
}

}  // namespace dist::data
