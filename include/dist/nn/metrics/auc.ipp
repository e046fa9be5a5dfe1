#pragma once

#include <algorithm>
#include <cmath>

#include <dist/nn/metrics/auc.hpp>

namespace dist::nn {

DIST_INLINE void Auc::check() const {
  if (thresholds < 2)
    throw InvalidArgument("Auc.thresholds is out of range", concat("it is ", thresholds),
                          "Give a number of thresholds, 2 or more, such as 200");
}

DIST_INLINE double Auc::result(TensorView<const double> counts) const {
  double negatives = 0, positives = 0;
  for (std::size_t i = 0; i < thresholds; ++i) {
    negatives += counts[i];
    positives += counts[thresholds + i];
  }
  // From the largest threshold, below no element, to the least, below all.
  double area = 0;
  Point last{};
  for (std::size_t i = thresholds; i-- > 0;) {
    const Point next{last.false_positives + counts[i], last.true_positives + counts[thresholds + i]};
    area += curve == Curve::roc ? roc_area(last, next, negatives, positives) : pr_area(last, next, positives);
    last = next;
  }
  return area;
}

DIST_INLINE double Auc::roc_area(const Point& from, const Point& to, double negatives, double positives) {
  const double width =
      detail::part_of(to.false_positives, negatives) - detail::part_of(from.false_positives, negatives);
  const double heights =
      detail::part_of(to.true_positives, positives) + detail::part_of(from.true_positives, positives);
  return width * heights / 2;
}

DIST_INLINE double Auc::pr_area(const Point& from, const Point& to, double positives) {
  const double added = to.true_positives - from.true_positives;
  const double slope = detail::part_of(added, std::max(to.all() - from.all(), 0.0));
  const double intercept = from.true_positives - slope * from.all();
  const double ratio = to.all() > 0 && from.all() > 0 ? to.all() / from.all() : 1;
  return detail::part_of(slope * (added + intercept * std::log(ratio)), positives);
}

}  // namespace dist::nn
