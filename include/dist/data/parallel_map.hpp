#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/any_pass.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/map.hpp>

namespace dist::data {

/// The number of threads that call the function of `map` or `random_map` (tf.data's num_parallel_calls).
struct NumParallelCalls {
  std::size_t count;  ///< from 1 to 1024
};

namespace detail {

/// A function of an element, its argument and its index, with erased types. Several threads call it.
class AnyCall {
 public:
  AnyCall() = default;
  AnyCall(const AnyCall&) = delete;
  AnyCall& operator=(const AnyCall&) = delete;
  virtual ~AnyCall() = default;
  virtual void operator()(const void* argument, void* element, std::uint64_t index) const = 0;
};

template <class Argument, class Element, class Call>
class CallOf final : public AnyCall {
 public:
  explicit CallOf(Call call) : call_(call) {}
  void operator()(const void* argument, void* element, std::uint64_t index) const override {
    call_(*static_cast<const Argument*>(argument), *static_cast<Element*>(element), index);
  }

 private:
  Call call_;
};

/// Returns a pass of the results of `call` for the elements of `arguments`, whose first one has index `first`.
/// `threads` threads make at most as many results ahead of the consumer.
[[nodiscard]] std::unique_ptr<AnyPass> called_in_parallel(std::unique_ptr<AnyPass> arguments,
                                                          std::unique_ptr<AnyCall> call, const ElementOps& of_arguments,
                                                          const ElementOps& of_results, std::size_t threads,
                                                          std::uint64_t first);

/// Throws InvalidArgument if there are none or too many.
void require_parallel_calls(NumParallelCalls calls);

}  // namespace detail

/// The elements of a MapDataset or RandomMapDataset `Map`, made by several threads. Made by `map` and `random_map`.
template <class Map>
class ParallelMapDataset : public StepDataset<ParallelMapDataset<Map>, Map> {
  using D = std::remove_reference_t<decltype(std::declval<Map&>().upstream())>;
  static_assert(!data::lends_elements<D>,
                "map with NumParallelCalls keeps elements beyond the next one, these are lent for one step: put it "
                "before the dataset is distributed");

 public:
  using Element = ElementOf<Map>;

  /// The step that `map(function, calls, rows)` and `random_map(function, seed, calls)` make.
  ParallelMapDataset(Map map, NumParallelCalls calls)
      : StepDataset<ParallelMapDataset, Map>(std::move(map)), calls_(calls) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const ParallelMapDataset& dataset, std::uint64_t epoch)
        : dataset_(&dataset), epoch_(epoch), pass_(dataset.any_pass(epoch)) {}

    bool next(Element& element) {
      if (!pass_->next(&element)) return false;
      ++given_;
      return true;
    }
    /// See Resumable. Elements that were made ahead are made again after a seek.
    [[nodiscard]] std::uint64_t position() const noexcept requires Resumable<IteratorOf<D>> { return given_; }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      pass_ = dataset_->any_pass(epoch_, position);
      given_ = position;
    }

   private:
    const ParallelMapDataset* dataset_;
    std::uint64_t epoch_;
    std::uint64_t given_ = 0;
    std::unique_ptr<detail::AnyPass> pass_;
  };

  /// Starts a type-erased pass at an element, by default at the first one.
  [[nodiscard]] std::unique_ptr<detail::AnyPass> any_pass(std::uint64_t epoch,
                                                          std::same_as<std::uint64_t> auto... position) const {
    using Call = detail::CallOf<ElementOf<D>, Element, typename Map::Call>;
    return detail::called_in_parallel(detail::any_pass(this->dataset_.dataset_, epoch, position...),
                                      std::make_unique<Call>(this->dataset_.call(epoch)),
                                      detail::element_ops<ElementOf<D>>, detail::element_ops<Element>, calls_.count,
                                      (std::uint64_t{0} + ... + position));
  }

 private:
  NumParallelCalls calls_;
};

/// `map` by threads that live as long as the pass, at most `calls` results ahead of the consumer. The elements and
/// their order are the same as with the other `map`. Several threads call `function` at the same time, and take turns
/// in reading the dataset. An exception of either is thrown in place of the element, and again by later calls.
///
/// A call costs some microseconds more, so use it for functions that take longer, such as the decoding of an image.
/// Throws InvalidArgument unless `calls` is from 1 to 1,024.
template <class Function>
[[nodiscard]] auto map(Function function, NumParallelCalls calls, RowCount rows = RowCount::changes) {
  detail::require_parallel_calls(calls);
  return Pipe{[made = map(std::move(function), rows), calls]<Dataset D>(D dataset) {
    auto mapped = made.make(std::move(dataset));
    return ParallelMapDataset<decltype(mapped)>{std::move(mapped), calls};
  }};
}

/// `random_map` by several threads, like `map` with NumParallelCalls. The random numbers are the same as with the other
/// `random_map`.
template <class Function>
[[nodiscard]] auto random_map(Function function, std::uint64_t seed, NumParallelCalls calls) {
  detail::require_parallel_calls(calls);
  return Pipe{[made = random_map(std::move(function), seed), calls]<Dataset D>(D dataset) {
    auto mapped = made.make(std::move(dataset));
    return ParallelMapDataset<decltype(mapped)>{std::move(mapped), calls};
  }};
}

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/parallel_map.ipp>
#endif
