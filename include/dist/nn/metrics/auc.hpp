#pragma once

#include <cmath>
#include <cstddef>
#include <string_view>

#include <dist/core/algorithms.hpp>
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

/// The area under the ROC or precision-recall curve, with Keras' thresholds and interpolation. Outputs are
/// probabilities, or logits. Targets have their shape; all except 0 are positive.
struct Auc {
  static constexpr bool more_is_better = true;

  /// The curves that can be integrated.
  enum class Curve {
    roc,  ///< true positive rate over false positive rate; linear between thresholds
    pr,  ///< precision over recall; between thresholds as in Davis, Goadrich: "The relationship between precision-recall
         ///< and ROC curves", ICML 2006
  };

  std::size_t thresholds = 200;  ///< number of points on the curve, as in Keras
  Curve curve = Curve::roc;      ///< whose area is measured
  bool from_logits = false;      ///< true if outputs are logits, false if they are probabilities
  std::string_view name = "auc";

  /// Throws InvalidArgument.
  void check() const;
  /// Counts by target (negative, positive) and bucket: the largest threshold below the output.
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
  [[nodiscard]] double result(TensorView<const double> counts) const;

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
  /// Returns a probability's bucket. Thresholds are at i / (thresholds - 1), and not below equal probabilities. NaN is
  /// in bucket 0.
  template <class T>
  [[nodiscard]] DIST_HD T bucket(T probability) const {
    using detail::select;
    using std::floor;
    const T place = -floor(-probability * number<T>(thresholds - 1)) - T{1};
    const T inside = select((probability > T{0}) & (place > T{0}), place, T{0});
    return select(probability >= T{1}, number<T>(thresholds - 2), inside);
  }
  [[nodiscard]] static double roc_area(const Point& from, const Point& to, double negatives, double positives);
  [[nodiscard]] static double pr_area(const Point& from, const Point& to, double positives);
};

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/nn/metrics/auc.ipp>
#endif
