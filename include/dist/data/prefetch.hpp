#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/any_pass.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distribute_options.hpp>

namespace dist::data {

namespace detail {

/// Returns a pass that a thread runs ahead of its consumer, by at most `ring_size` elements; `pass` itself if that is
/// 0.
[[nodiscard]] std::unique_ptr<AnyPass> made_ahead(std::unique_ptr<AnyPass> pass, const ElementOps& ops,
                                                  std::size_t ring_size);

void require_ring_size(std::size_t elements, std::size_t least);

}  // namespace detail

/// The elements of `D`, prefetched by a background thread. Made by `prefetch`.
template <Dataset D>
class PrefetchDataset : public StepDataset<PrefetchDataset<D>, D> {
  static_assert(!data::lends_elements<D>,
                "prefetch keeps elements for several steps, but these elements are valid for one step only: put "
                "prefetch before the dataset is distributed");

 public:
  using Element = ElementOf<D>;

  /// With a `ring_size` of 0, elements are made on demand in the calling thread. Throws InvalidArgument if the ring is
  /// too large.
  PrefetchDataset(D dataset, std::size_t ring_size)
      : StepDataset<PrefetchDataset, D>(std::move(dataset)), ring_size_(ring_size) {
    detail::require_ring_size(ring_size, 0);
  }

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const PrefetchDataset& dataset, std::uint64_t epoch)
        : dataset_(&dataset), epoch_(epoch), pass_(dataset.any_pass(epoch)) {}

    bool next(Element& element) {
      if (!pass_->next(&element)) return false;
      ++given_;
      return true;
    }
    /// See Resumable. Prefetched elements are made again after a seek.
    [[nodiscard]] std::uint64_t position() const noexcept { return given_; }
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      pass_ = dataset_->any_pass(epoch_, position);
      given_ = position;
    }

   private:
    const PrefetchDataset* dataset_;
    std::uint64_t epoch_;
    std::uint64_t given_ = 0;
    std::unique_ptr<detail::AnyPass> pass_;
  };

  /// Starts a type-erased pass at an element, by default at the first one.
  [[nodiscard]] std::unique_ptr<detail::AnyPass> any_pass(std::uint64_t epoch,
                                                          std::same_as<std::uint64_t> auto... position) const {
    return detail::made_ahead(detail::any_pass(this->dataset_, epoch, position...), detail::element_ops<Element>,
                              ring_size_);
  }
  /// Returns the same prefetch over `make(upstream)`.
  template <class Make>
  [[nodiscard]] auto over(Make make) && {
    return data::PrefetchDataset<decltype(make(std::move(this->dataset_)))>{make(std::move(this->dataset_)),
                                                                            ring_size_};
  }

 private:
  std::size_t ring_size_;
};

template <class D>
auto made_ahead(D dataset, std::size_t elements) {
  return PrefetchDataset<D>{std::move(dataset), elements};
}

/// Prefetches up to `elements` elements in a thread that lives as long as the pass. An exception of the dataset is
/// thrown in place of the element. Throws InvalidArgument if `elements` is 0.
[[nodiscard]] inline auto prefetch(std::size_t elements) {
  detail::require_ring_size(elements, 1);
  return Pipe{[=]<Dataset D>(D dataset) { return PrefetchDataset<D>{std::move(dataset), elements}; }};
}

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/prefetch.ipp>
#endif
