/// What a batch becomes, at contract level 2, when its step is over: a view that was kept shows it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/contract.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/example.hpp>

namespace dist::data::detail {

/// What batches are made of: parts in a tuple, or features and labels, and in the end tensors.
template <class Batch>
concept HasTupleSize = requires {
  std::tuple_size<Batch>::value;
};
template <class Batch>
concept HasFeaturesAndLabels = requires(Batch& batch) {
  batch.x;
  batch.y;
};
template <class Batch>
concept OwnsItsElements = std::same_as<Batch, Tensor<typename Batch::Element>>;

/// Overwrites rows `first` to `first + count - 1` of what `batch` owns with ones in every bit: NaN, -1, the largest
/// unsigned integer. Views are left alone, their elements belong to somebody else.
template <class Batch>
void poison_rows(Batch& batch, std::size_t first, std::size_t count) {
  if constexpr (HasTupleSize<Batch>) {
    std::apply([&](auto&... parts) { (poison_rows(parts, first, count), ...); }, batch);
  } else if constexpr (HasFeaturesAndLabels<Batch>) {
    poison_rows(batch.x, first, count);
    poison_rows(batch.y, first, count);
  } else if constexpr (OwnsItsElements<Batch>) {
    using T = typename Batch::Element;
    if constexpr (!std::is_same_v<T, bool>) {
      const TensorView<T> rows = batch.view().rows(first, count);
      if (rows.size() > 0) std::memset(static_cast<void*>(rows.data()), 0xFF, rows.size() * sizeof(T));
    }
  }
}

/// Whether batches are poisoned.
inline constexpr bool poisons_batches = DIST_CONTRACT_LEVEL >= 2;

}  // namespace dist::data::detail
