#pragma once

#include <dist/comm/packing.hpp>

namespace dist {

DIST_INLINE std::vector<IndexRange> packs_by_count(std::size_t elements, std::size_t packs) {
  std::vector<IndexRange> ranges;
  const std::size_t size = elements / packs;
  for (std::size_t pack = 0; pack < packs; ++pack) {
    const IndexRange range{pack * size, pack + 1 == packs ? elements : (pack + 1) * size};
    if (range.size() > 0) ranges.push_back(range);
  }
  return ranges;
}

DIST_INLINE std::vector<IndexRange> packs_by_bytes(std::span<const std::size_t> bytes, std::size_t limit) {
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

}  // namespace dist
