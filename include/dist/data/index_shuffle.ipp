#pragma once

#include <dist/data/index_shuffle.hpp>

namespace dist::data::detail {

DIST_INLINE std::uint64_t count_to_shuffle(Cardinality elements) {
  if (!elements.is_known())
    throw InvalidArgument("index_shuffle cannot shuffle the dataset", "the number of its elements is not known",
                          "Put it before repeat, or use shuffle with a buffer");
  return elements.count();
}

}  // namespace dist::data::detail
