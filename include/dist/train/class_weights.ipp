#pragma once

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/train/class_weights.hpp>

namespace dist::nn::detail {

DIST_INLINE void ClassWeights::refuse_targets() {
  throw InvalidArgument("fit was given class_weight for targets that are no classes",
                        "they are not integers in memory of the host", "Give each example a sample weight instead");
}

DIST_INLINE void ClassWeights::refuse_row(std::size_t row, std::size_t classes) {
  throw InvalidArgument(concat("fit was given class_weight, and row ", row, " of the targets is of no single class"),
                        concat("its ", classes, " numbers are not a 1 and zeros"),
                        "Give each example the number of its class, a row with one 1, or a sample weight");
}

DIST_INLINE void ClassWeights::refuse_label(std::int64_t label, std::size_t classes) {
  throw InvalidArgument("fit met a label that class_weight has no weight for",
                        concat("label ", label, ", and ", classes, " weights"), "Give one weight for each class");
}

}  // namespace dist::nn::detail
