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
#include <dist/nn/choice.hpp>
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

  template <class Outputs, class Targets, class Add>
  DIST_HD void for_each_bin(Outputs outputs, Targets targets, const Add& add) const {
    for_each_element(outputs, [&](auto i) {
      using detail::select;
      using std::exp;
      using T = typename Outputs::Element;
      const T p = from_logits ? T{1} / (T{1} + exp(-outputs[i])) : outputs[i];
      const T first = select(targets[i] != typename Targets::Element{0}, number<T>(thresholds), T{0});
      add(bin_of(first + bucket(p)));
    });
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

  template <class T>
  [[nodiscard]] static DIST_HD T number(std::size_t count) {
    return static_cast<T>(static_cast<double>(count));
  }
  /// Thresholds are at i / (thresholds - 1), and a probability that is one of them is not above it. NaN is above none but
  /// the least.
  template <class T>
  [[nodiscard]] DIST_HD T bucket(T probability) const {
    using detail::select;
    using std::floor;
    const T place = -floor(-probability * number<T>(thresholds - 1)) - T{1};
    const T inside = select((probability > T{0}) & (place > T{0}), place, T{0});
    return select(probability >= T{1}, number<T>(thresholds - 2), inside);
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
