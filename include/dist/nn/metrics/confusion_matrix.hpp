#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/precision_recall.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// How often examples of each class were taken for each class, that of the largest output:
///
///     nn::Metric confusion{strategy, nn::ConfusionMatrix{.classes = 10}};
///     const dist::Tensor<double> matrix = confusion.counts(strategy.scope());  // [right class, class of the output]
///
/// The result that logs show is the accuracy, the part on the diagonal. Outputs [rows, classes], labels [rows] or [rows, 1]
/// of an integer type. A label that is no class is refused in the host's memory, and counted nowhere in that of devices.
struct ConfusionMatrix {
  static constexpr bool more_is_better = true;
  static constexpr bool takes_labels = true;  ///< see MetricLowering

  std::size_t classes;
  std::string_view name = "confusion_matrix";

  /// Throws InvalidArgument.
  void check() const {
    if (classes < 1)
      throw InvalidArgument("ConfusionMatrix.classes is out of range", concat("it is ", classes),
                            "Give the number of classes, which is that of the network's outputs");
  }
  [[nodiscard]] Shape shape() const { return {classes, classes}; }

  template <class Label>
  static constexpr void require_target() {
    detail::require_integer_labels<Label>();
  }
  /// Throws ShapeMismatch, and InvalidArgument for a label of the host that is no class.
  template <class T, std::integral Label, dist::MemorySpace Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Label, Where> labels) const {
    require_targets(name, outputs, labels, 1);
    if (outputs.rows() > 0 && outputs.row_size() != classes)
      throw ShapeMismatch(concat(name, " got outputs of another number of classes"),
                          concat("it has ", classes, ", the outputs ", to_string(outputs.shape())),
                          "Give .classes the number of the network's outputs");
    if constexpr (Where::host_accessible)
      for (std::size_t row = 0; row < labels.rows(); ++row)
        if (class_of(labels[row]) >= classes)
          throw InvalidArgument(concat("Label ", +labels[row], " of row ", row, " is not a class"),
                                concat("there are ", classes, " classes, 0 to ", classes - 1),
                                "Number the labels from 0");
  }
  template <class Outputs, class Labels, class Add>
  requires std::integral<typename Labels::Element> DIST_HD void for_each_bin(Outputs outputs, Labels label,
                                                                             const Add& add) const {
    add.one_of(class_of(label), classes, [&] { return index_of_largest(outputs); });
  }
  [[nodiscard]] double result(TensorView<const double> counts) const {
    double right = 0, all = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      all += counts[i];
      if (i % (classes + 1) == 0) right += counts[i];
    }
    return detail::part_of(right, all);
  }
};

}  // namespace dist::nn
