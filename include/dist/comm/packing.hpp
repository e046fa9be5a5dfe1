/// Reduction of many tensors in few collectives (spec H07, H09, H12).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// Cuts the concatenated tensors into `packs` packs of equal size, plus the remainder in the last one. 0: each tensor
/// separately (spec H07).
struct PackByCount {
  std::size_t packs = 1;  ///< number of packs of equal size
};
/// Packs whole tensors, from the last to the first because gradients become ready in this order, until a pack exceeds
/// `bytes`; 0: one pack (spec H12).
struct PackByBytes {
  std::size_t bytes = 0;  ///< size that closes a pack
};

/// Returns the packs of `elements` elements: elements / packs each, plus the remainder in the last one. Omits empty
/// packs.
[[nodiscard]] inline std::vector<IndexRange> packs_by_count(std::size_t elements, std::size_t packs) {
  std::vector<IndexRange> ranges;
  const std::size_t size = elements / packs;
  for (std::size_t pack = 0; pack < packs; ++pack) {
    const IndexRange range{pack * size, pack + 1 == packs ? elements : (pack + 1) * size};
    if (range.size() > 0) ranges.push_back(range);
  }
  return ranges;
}

/// Returns the packs of tensors with these sizes in bytes, as ranges of tensors, the last tensors first. A pack is
/// closed once it exceeds `limit` bytes; 0: never.
[[nodiscard]] inline std::vector<IndexRange> packs_by_bytes(std::span<const std::size_t> bytes, std::size_t limit) {
  std::vector<IndexRange> packs;
  std::size_t in_pack = 0;
  for (std::size_t tensor = bytes.size(); tensor-- > 0;) {
    if (packs.empty() || (limit != 0 && in_pack > limit)) {
      packs.push_back({tensor + 1, tensor + 1});
      in_pack = 0;
    }
    packs.back().begin = tensor;
    in_pack += bytes[tensor];
  }
  return packs;
}

namespace detail {

/// Calls `use(elements)` with the concatenated tensors: in place if they are adjacent in memory, else in a copy that is
/// copied back.
template <class T, class Use>
void as_one_span(std::span<const std::span<T>> tensors, Use&& use) {
  std::size_t elements = 0;
  bool adjacent = true;
  T* begin = nullptr;
  for (const std::span<T> tensor : tensors) {
    if (tensor.empty()) continue;
    if (elements == 0) begin = tensor.data();
    adjacent = adjacent && tensor.data() == begin + elements;
    elements += tensor.size();
  }
  if (elements == 0) return use(std::span<T>{});
  if (adjacent) return use(std::span<T>{begin, elements});
  AlignedBuffer<T> copy(elements);
  T* place = copy.data();
  for (const std::span<T> tensor : tensors) place = std::copy(tensor.begin(), tensor.end(), place);
  use(std::span<T>{copy.data(), elements});
  place = copy.data();
  for (const std::span<T> tensor : tensors) {
    std::copy_n(place, tensor.size(), tensor.begin());
    place += tensor.size();
  }
}

}  // namespace detail

/// Calls `all_reduce` for all tensors, in place and packed. Adjacent tensors are reduced in memory; others are copied
/// together and back. The result does not depend on addresses; the packing may change its last bits if the policy does
/// not sum in rank order. A collective call: with the same extents and packing on every replica.
template <class Collectives, class T, ReduceOp<T> Op>
void batch_all_reduce(const Collectives& collectives, Op op, std::span<const std::span<T>> tensors,
                      PackByBytes packing) {
  std::vector<std::size_t> bytes;
  for (const std::span<T> tensor : tensors) bytes.push_back(tensor.size_bytes());
  for (const IndexRange pack : packs_by_bytes(bytes, packing.bytes))
    detail::as_one_span<T>(tensors.subspan(pack.begin, pack.size()),
                           [&](std::span<T> elements) { collectives.all_reduce(op, elements); });
}
/// Calls `all_reduce` for all tensors, in place, in a given number of packs. A collective call.
template <class Collectives, class T, ReduceOp<T> Op>
void batch_all_reduce(const Collectives& collectives, Op op, std::span<const std::span<T>> tensors,
                      PackByCount packing) {
  if (packing.packs == 0) {
    for (const std::span<T> tensor : tensors) collectives.all_reduce(op, tensor);
    return;
  }
  detail::as_one_span<T>(tensors, [&](std::span<T> elements) {
    for (const IndexRange pack : packs_by_count(elements.size(), packing.packs))
      collectives.all_reduce(op, elements.subspan(pack.begin, pack.size()));
  });
}

}  // namespace dist
