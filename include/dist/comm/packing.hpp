/// Many tensors in few collectives (spec H07, H09, H12).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// All tensors, concatenated, are cut into `packs` packs of equal size, of which the last takes the remainder too;
/// with 0 each tensor travels alone (spec H07).
struct PackByCount {
  std::size_t packs = 1;
};
/// Whole tensors travel together, from the last to the first as gradients become ready, until a pack is more than
/// `bytes`; 0 makes one pack (spec H12).
struct PackByBytes {
  std::size_t bytes = 0;
};

/// The packs of `elements` elements: size elements / packs, the last one with the remainder. Packs without elements are
/// left out.
[[nodiscard]] std::vector<IndexRange> packs_by_count(std::size_t elements, std::size_t packs);

/// The packs of tensors that take so many bytes each, as ranges of tensors, the last tensors first. A pack is closed
/// once it is more than `limit` bytes; a limit of 0 closes none.
[[nodiscard]] std::vector<IndexRange> packs_by_bytes(std::span<const std::size_t> bytes, std::size_t limit);

namespace detail {

/// Calls `use(elements)` with the elements of all tensors, concatenated: in place, if they lie so, else in a
/// copy that is copied back.
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

/// `all_reduce` of every tensor, in place, packed. Tensors that follow each other in memory are reduced there;
/// others are copied together and back. The result does not depend on where the tensors lie on which replica; nor on
/// the packing, except for the last bits under a policy that does not sum in rank order. A collective call: the same
/// extents and the same packing on every replica.
template <class Collectives, class T, ReduceOp<T> Op>
void batch_all_reduce(const Collectives& collectives, Op op, std::span<const std::span<T>> tensors,
                      PackByBytes packing) {
  std::vector<std::size_t> bytes;
  for (const std::span<T> tensor : tensors) bytes.push_back(tensor.size_bytes());
  for (const IndexRange pack : packs_by_bytes(bytes, packing.bytes))
    detail::as_one_span<T>(tensors.subspan(pack.begin, pack.size()),
                           [&](std::span<T> elements) { collectives.all_reduce(op, elements); });
}
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

#ifndef DIST_COMPILED
#include <dist/comm/packing.ipp>
#endif
