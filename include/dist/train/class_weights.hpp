#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn::detail {

/// Weights of the examples of a batch in a loss, by the classes of their targets.
class ClassWeights {
 public:
  explicit ClassWeights(std::size_t local_replicas) : of_examples_(local_replicas) {}

  /// Sets the weight of each class. If empty, all examples have the same weight.
  void set(std::vector<float> weights) { of_classes_ = std::move(weights); }

  /// Calls `step(weights)` with the weights of the examples of `loss`: the weights of their classes, times the sample
  /// weights if `given`; 0 for ignored labels. Targets are labels, or one-hot rows. Throws InvalidArgument for other
  /// targets, or for a class without a weight.
  template <class L, class Targets>
  void weigh(std::size_t local_replica, const L& loss, const auto& outputs, const Targets& targets, const auto& step,
             const auto&... given) {
    using Labels = decltype(values_of(targets));
    constexpr bool are_classes =
        std::integral<std::remove_const_t<typename Labels::Element>> && Labels::is_host_accessible;
    if (of_classes_.empty()) {
      if constexpr (sizeof...(given) == 0)
        step(Unweighted{});
      else
        step(given...);
    } else if constexpr (are_classes) {
      const auto values = values_of(outputs);
      const auto labels = values_of(targets);
      const std::size_t examples = rows_of_examples<L>(values).rows();
      Tensor<float>& weights = of_examples_[local_replica];
      weights.resize(AlongLastAxis<L> ? shape_of_labels(values.shape()) : Shape{examples});
      const auto set_all = [&](const auto&... sample_weight) {
        for (std::size_t i = 0; i < examples; ++i) {
          const auto target = row_at(labels.data(), labels.size() / examples, i);
          const float of_class = is_counted(loss, target) ? weight_of(class_of_row(i, target)) : 0;
          weights[i] = (of_class * ... * static_cast<float>(sample_weight(i)));
        }
      };
      set_all(example_weights<L>("fit", given, values)...);
      step(weights);
    } else {
      refuse_targets();
    }
  }
  /// Calls `step(weights)` in a traced step. The trace depends on the number of class weights.
  void weigh(const InTrace auto& replica, const auto& loss, const auto& outputs, const auto& targets, const auto& step,
             const auto&... given) const {
    using Target = typename std::remove_cvref_t<decltype(targets)>::Element;
    const auto number = [this] { return static_cast<std::int64_t>(of_classes_.size()); };
    const auto classes = static_cast<std::size_t>(replica.choice(number));
    if (classes == 0) {
      if constexpr (sizeof...(given) == 0)
        step(Unweighted{});
      else
        step(given...);
    } else if constexpr (std::integral<Target>) {
      const auto table = [this] { return Tensor<float>{Shape{of_classes_.size()}, of_classes_}; };
      step(traced_class_weights(FitInTrace{}, loss, replica, outputs, targets, classes, table, given...));
    } else {
      refuse_targets();
    }
  }

 private:
  [[noreturn]] static void refuse_targets();
  [[noreturn]] static void refuse_row(std::size_t row, std::size_t classes);
  [[noreturn]] static void refuse_label(std::int64_t label, std::size_t classes);

  /// Returns the only number of a row, or the column of its 1.
  template <class Target>
  [[nodiscard]] static std::int64_t class_of_row(std::size_t row, Row<const Target> numbers) {
    const std::size_t classes = numbers.size();
    if (classes == 1) return static_cast<std::int64_t>(numbers[0]);
    std::size_t ones = 0, others = 0, column = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      if (numbers[k] == 1) {
        ++ones;
        column = k;
      } else if (numbers[k] != 0) {
        ++others;
      }
    }
    if (ones != 1 || others > 0) refuse_row(row, classes);
    return static_cast<std::int64_t>(column);
  }
  [[nodiscard]] float weight_of(std::int64_t label) const {
    if (std::cmp_less(label, 0) || std::cmp_greater_equal(label, of_classes_.size()))
      refuse_label(label, of_classes_.size());
    return of_classes_[static_cast<std::size_t>(label)];
  }

  std::vector<float> of_classes_;
  std::vector<Tensor<float>> of_examples_;  // of each replica of this process
};

}  // namespace dist::nn::detail

#ifndef DIST_COMPILED
#include <dist/train/class_weights.ipp>
#endif
