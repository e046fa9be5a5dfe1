/// What a dataset of batches knows of their sizes before the pass.
#pragma once

#include <concepts>
#include <cstddef>

namespace dist::data {

/// What knows the number of rows of its batches.
template <class D>
concept HasBatchSize = requires(const D& dataset) {
  dataset.batch_size();
};

/// The number of rows of every batch of a dataset except partial ones: what its member `batch_size()` says. 0
/// when it is not known, or there is no such member (spec I02).
template <class D>
[[nodiscard]] constexpr std::size_t known_batch_size(const D& dataset) {
  if constexpr (HasBatchSize<D>) return dataset.batch_size();
  return 0;
}

/// Which batches may have fewer rows than the batch size. Where `any` may, some may have no row at all.
enum class PartialBatches : unsigned char { none, last, any };

/// What knows which of its batches may be partial.
template <class D>
concept HasPartialBatches = requires(const D& dataset) {
  dataset.partial_batches();
};

/// What a dataset's member `partial_batches()` says; any may be partial where there is no such member.
template <class D>
[[nodiscard]] constexpr PartialBatches partial_batches_of(const D& dataset) {
  if constexpr (HasPartialBatches<D>) return dataset.partial_batches();
  return PartialBatches::any;
}

/// The same for batches in another order, or repeated: the last one may then be anywhere.
template <class D>
[[nodiscard]] constexpr PartialBatches reordered_partial_batches_of(const D& dataset) {
  return partial_batches_of(dataset) == PartialBatches::none ? PartialBatches::none : PartialBatches::any;
}

}  // namespace dist::data
