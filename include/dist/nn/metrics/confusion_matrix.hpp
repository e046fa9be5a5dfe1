#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
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

/// The number of examples by class and by predicted class, the index of the largest output:
///
///     nn::Metric confusion{strategy, nn::ConfusionMatrix{.classes = 10}};
///     const dist::Tensor<double> matrix = confusion.counts(strategy.scope());  // [right class, class of the output]
///
/// The result is the accuracy, the fraction on the diagonal. Outputs and labels are as in
/// nn::SparseCategoricalCrossentropy. Labels out of range throw in the host's memory, and are ignored in device memory.
struct ConfusionMatrix {
  static constexpr bool more_is_better = true;
  static constexpr bool takes_labels = true;  ///< see MetricLowering

  std::size_t classes;  ///< number of classes, for labels from 0
  std::string_view name = "confusion_matrix";
  std::int64_t ignore_class = ignore_none;  ///< the label of examples to leave out

  /// Throws InvalidArgument.
  void check() const;
  [[nodiscard]] Shape shape() const { return {classes, classes}; }

  template <class Label>
  static constexpr void require_target() {
    detail::require_integer_labels<Label>();
  }
  /// Throws ShapeMismatch, and InvalidArgument for a label out of range in the host's memory.
  template <class T, std::integral Label, dist::MemorySpace Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Label, Where> labels) const {
    if (outputs.rows() > 0 && outputs.row_size() != classes)
      throw ShapeMismatch(concat(name, " got outputs with a different number of classes"),
                          concat("it has ", classes, ", the outputs have shape ", to_string(outputs.shape())),
                          "Set .classes to the number of the network's outputs");
    if constexpr (Where::host_accessible)
      for (std::size_t row = 0; row < labels.rows(); ++row)
        if (class_of(labels[row]) >= classes && detail::is_counted(*this, row_of(labels.elements().subspan(row, 1))))
          throw InvalidArgument(concat("Label ", +labels[row], " of example ", row, " is not a class"),
                                concat("there are ", classes, " classes, 0 to ", classes - 1),
                                "Number the labels from 0");
  }
  template <class Outputs, class Labels, class Add>
  requires std::integral<typename Labels::Element> DIST_HD void for_each_bin(Outputs outputs, Labels label,
                                                                             const Add& add) const {
    add.one_of(class_of(label), classes, [&] { return index_of_largest(outputs); });
  }
  [[nodiscard]] double result(TensorView<const double> counts) const;
};

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/nn/metrics/confusion_matrix.ipp>
#endif
