#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

namespace detail {

/// The state that the copies and passes of a cached dataset share.
template <Dataset D>
struct Cache {
  enum class State : unsigned char { empty, filling, full };

  explicit Cache(D cached) : dataset(std::move(cached)) {}

  D dataset;
  std::vector<ElementOf<D>> elements;  // written by the filling pass, read once the state is full
  std::atomic<State> state{State::empty};
};

/// The right to fill a cache. One pass at a time has it, until it ends.
template <Dataset D>
class CacheFill {
 public:
  CacheFill() = default;
  explicit CacheFill(Cache<D>& cache) {
    State expected = State::empty;
    if (cache.state.compare_exchange_strong(expected, State::filling, std::memory_order_acquire)) cache_ = &cache;
  }
  CacheFill(CacheFill&& other) noexcept : cache_(std::exchange(other.cache_, nullptr)) {}
  CacheFill& operator=(CacheFill&& other) noexcept {
    std::swap(cache_, other.cache_);
    return *this;
  }
  ~CacheFill() { cancel(); }

  void add(const ElementOf<D>& element) {
    if (cache_ != nullptr) cache_->elements.push_back(element);
  }
  void complete() {
    if (cache_ != nullptr) end(State::full);
  }
  void cancel() {
    if (cache_ == nullptr) return;
    cache_->elements = {};
    end(State::empty);
  }

 private:
  using State = typename Cache<D>::State;

  void end(State state) { std::exchange(cache_, nullptr)->state.store(state, std::memory_order_release); }

  Cache<D>* cache_ = nullptr;
};

}  // namespace detail

/// The elements of one pass over `D`, kept in memory. Made by `cache`.
template <Dataset D>
class CacheDataset : public DatasetRange<CacheDataset<D>> {
  static_assert(!data::lends_elements<D>,
                "cache keeps elements for several steps, but these elements are valid for one step only: put cache "
                "before the dataset is distributed");

 public:
  using Element = ElementOf<D>;
  static constexpr bool is_batched = data::is_batched<D>;

  /// The step that `cache()` makes. Throws InvalidArgument if `dataset` is infinite.
  explicit CacheDataset(D dataset) : cache_(std::make_shared<detail::Cache<D>>(std::move(dataset))) {
    if (cardinality().is_infinite())
      throw InvalidArgument("An infinite dataset cannot be cached", "no pass over it is ever complete",
                            "Put cache before repeat");
  }

  /// One pass, over the cache if it is full.
  class Iterator {
   public:
    explicit Iterator(detail::Cache<D>& cache) : cache_(&cache) {
      if (cache.state.load(std::memory_order_acquire) == detail::Cache<D>::State::full) return;
      fill_ = detail::CacheFill<D>{cache};
      upstream_.emplace(cache.dataset.iterate(0));
    }

    bool next(Element& element) {
      if (upstream_) return next_of_upstream(element);
      if (index_ == cache_->elements.size()) return false;
      element = cache_->elements[index_++];
      return true;
    }

   private:
    /// Not inlined: only the first pass calls it, and it contains the whole dataset.
    [[gnu::noinline]] bool next_of_upstream(Element& element) {
      try {
        if (upstream_->next(element)) {
          fill_.add(element);
          return true;
        }
      } catch (...) {
        fill_.cancel();
        throw;
      }
      fill_.complete();
      return false;
    }

    detail::Cache<D>* cache_;
    detail::CacheFill<D> fill_;
    std::optional<IteratorOf<D>> upstream_;  // empty if the cache was full at the start
    std::size_t index_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*cache_}; }
  [[nodiscard]] Cardinality cardinality() const { return cache_->dataset.cardinality(); }
  [[nodiscard]] std::size_t batch_size() const { return known_batch_size(cache_->dataset); }
  [[nodiscard]] PartialBatches partial_batches() const { return partial_batches_of(cache_->dataset); }
  /// Returns the cached dataset for modification. This object gets a new cache; its copies keep theirs.
  [[nodiscard]] D& upstream() requires std::copy_constructible<D> {
    cache_ = std::make_shared<detail::Cache<D>>(D(cache_->dataset));
    return cache_->dataset;
  }

 private:
  std::shared_ptr<detail::Cache<D>> cache_;
};

/// Keeps the elements in memory: the upstream steps run in the first complete pass only (spec I31). Copies of the
/// dataset share the memory. Views are stored as views, without their data. Passes may run concurrently in any threads.
///
/// Every pass reads epoch 0 of the upstream dataset: shuffle after the cache for another order in every epoch. Throws
/// InvalidArgument if the dataset is infinite.
[[nodiscard]] inline auto cache() {
  return Pipe{[]<Dataset D>(D dataset) {
    constexpr bool copyable = std::copyable<ElementOf<D>>;
    if constexpr (copyable)
      return CacheDataset<D>{std::move(dataset)};
    else
      static_assert(copyable, "cache: the elements of the dataset must be copyable: convert them with map");
  }};
}

}  // namespace dist::data
