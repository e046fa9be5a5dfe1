#pragma once

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/train/class_weights.hpp>

namespace dist::nn::detail {

DIST_INLINE void ClassWeights::refuse_targets() {
  throw InvalidArgument("fit was given class_weight for targets that are not classes",
                        "they are not integers in host memory", "Give each example a sample weight instead");
}

DIST_INLINE void ClassWeights::refuse_row(std::size_t row, std::size_t classes) {
  throw InvalidArgument(
      concat("fit was given class_weight, and row ", row, " of the targets does not belong to a single class"),
      concat("its ", classes, " numbers are not a 1 and zeros"),
      "Give each example the number of its class, a row with one 1, or a sample weight");
}

DIST_INLINE void ClassWeights::refuse_label(std::int64_t label, std::size_t classes) {
  throw InvalidArgument("class_weight has no weight for a label of the targets",
                        concat("the label is ", label, ", and there are ", classes, " weights"),
                        "Give one weight for each class");
}

}  // namespace dist::nn::detail
