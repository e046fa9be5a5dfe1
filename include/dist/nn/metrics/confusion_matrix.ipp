#pragma once

#include <dist/nn/metrics/confusion_matrix.hpp>

namespace dist::nn {

DIST_INLINE void ConfusionMatrix::check() const {
  if (classes < 1)
    throw InvalidArgument("ConfusionMatrix.classes is out of range", concat("it is ", classes),
                          "Give the number of classes, which is the number of the network's outputs");
}

DIST_INLINE double ConfusionMatrix::result(TensorView<const double> counts) const {
  double right = 0, all = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    all += counts[i];
    if (i % (classes + 1) == 0) right += counts[i];
  }
  return detail::part_of(right, all);
}

}  // namespace dist::nn
