#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/precision_recall.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// The area under a curve of the answers that a threshold gives, from one below all probabilities to one above all, with
/// Keras' thresholds and interpolation. Outputs are probabilities, or logits; targets have their shape, and mean yes unless
/// they are 0.
struct Auc {
  static constexpr bool more_is_better = true;

  enum class Curve {
    roc,  ///< recall over the part of the negative ones that is answered with yes; straight between thresholds
    pr,  ///< precision over recall; between thresholds as of Davis, Goadrich: "The relationship between precision-recall
         ///< and ROC curves", ICML 2006
  };

  std::size_t thresholds = 200;
  Curve curve = Curve::roc;
  bool from_logits = false;
  std::string_view name = "auc";

  /// Throws InvalidArgument.
  void check() const {
    if (thresholds < 2)
      throw InvalidArgument("Auc.thresholds is out of range", concat("it is ", thresholds),
                            "Give a number of thresholds, 2 or more, such as 200");
  }
  /// The right answer of the elements in each bucket, the last that has a threshold below them.
  [[nodiscard]] Shape shape() const { return {2, thresholds}; }

  template <class T, class Target, class Add>
  DIST_HD void for_each_bin(Row<const T> outputs, Row<const Target> targets, const Add& add) const {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const T power = from_logits ? std::exp(-outputs[i]) : T{0};
      add((targets[i] != Target{0} ? thresholds : std::size_t{0}) +
          bucket(from_logits ? T{1} / (T{1} + power) : outputs[i]));
    }
  }
  [[nodiscard]] double result(TensorView<const double> counts) const {
    double negatives = 0, positives = 0;
    for (std::size_t i = 0; i < thresholds; ++i) {
      negatives += counts[i];
      positives += counts[thresholds + i];
    }
    // From the largest threshold, above which there is nothing, to the least, above which there is everything.
    double area = 0;
    Point last{};
    for (std::size_t i = thresholds; i-- > 0;) {
      const Point next{last.false_positives + counts[i], last.true_positives + counts[thresholds + i]};
      area += curve == Curve::roc ? roc_area(last, next, negatives, positives) : pr_area(last, next, positives);
      last = next;
    }
    return area;
  }

 private:
  struct Point {
    double false_positives = 0;
    double true_positives = 0;
    [[nodiscard]] double all() const { return false_positives + true_positives; }
  };

  /// Thresholds are at i / (thresholds - 1), and a probability that is one of them is not above it. NaN is above none but
  /// the least.
  template <class T>
  [[nodiscard]] DIST_HD std::size_t bucket(T probability) const {
    if (!(probability > T{0})) return 0;
    if (probability >= T{1}) return thresholds - 2;
    const T place = std::ceil(probability * static_cast<T>(thresholds - 1)) - T{1};
    return place > T{0} ? static_cast<std::size_t>(place) : 0;
  }
  [[nodiscard]] static double roc_area(const Point& from, const Point& to, double negatives, double positives) {
    const double width =
        detail::part_of(to.false_positives, negatives) - detail::part_of(from.false_positives, negatives);
    const double heights =
        detail::part_of(to.true_positives, positives) + detail::part_of(from.true_positives, positives);
    return width * heights / 2;
  }
  [[nodiscard]] static double pr_area(const Point& from, const Point& to, double positives) {
    const double added = to.true_positives - from.true_positives;
    const double slope = detail::part_of(added, std::max(to.all() - from.all(), 0.0));
    const double intercept = from.true_positives - slope * from.all();
    const double ratio = to.all() > 0 && from.all() > 0 ? to.all() / from.all() : 1;
    return detail::part_of(slope * (added + intercept * std::log(ratio)), positives);
  }
};

}  // namespace dist::nn
