#pragma once

#include <limits>
#include <numeric>

#include <dist/variable/embedding.hpp>

namespace dist {

DIST_INLINE IdLists::IdLists(std::span<const std::int64_t> ids, std::span<const std::size_t> splits)
    : ids_(ids), splits_(splits) {
  if (splits.empty() || splits.front() != 0 || splits.back() != ids.size() ||
      !std::is_sorted(splits.begin(), splits.end()))
    throw ShapeMismatch("Lists of ids do not fit together",
                        concat(ids.size(), " ids are split at ",
                               to_string(TensorView<const std::size_t>{splits.data(), Shape{splits.size()}})),
                        "Split them at ascending positions, from 0 to the number of ids");
}

}  // namespace dist

namespace dist::detail {

DIST_INLINE UniqueIds::UniqueIds(std::span<const std::int64_t> list, bool may_repeat)
    : ids(list.begin(), list.end()), at(list.size()) {
  if (may_repeat) {
    std::iota(at.begin(), at.end(), std::size_t{0});
    return;
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (std::size_t i = 0; i < list.size(); ++i)
    at[i] = static_cast<std::size_t>(std::lower_bound(ids.begin(), ids.end(), list[i]) - ids.begin());
}

DIST_INLINE double require_max_norm(double max_norm) {
  if (!(max_norm > 0) || max_norm > std::numeric_limits<double>::max())
    throw InvalidArgument(concat("Embeddings cannot be scaled to a length of ", max_norm),
                          "max_norm must be a positive number", "Give a positive max_norm, or leave it out");
  return max_norm;
}

}  // namespace dist::detail
