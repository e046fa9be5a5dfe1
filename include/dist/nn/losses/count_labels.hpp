#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// Selects the count of labels in traced steps, in nn/hlo/traced_loss.hpp, which only strategies that compile steps
/// include.
struct LabelsInTrace {};

namespace detail {

template <class Label>
struct IsCountedLabel {
  const Label* labels;
  std::int64_t ignored;
  DIST_HD std::uint64_t operator()(std::size_t i) const {
    return static_cast<std::int64_t>(labels[i]) != ignored ? 1 : 0;
  }
};

/// Returns the number of labels that are not `ignored`. In device memory `queue` counts, and the caller waits.
template <class Q, class Label, dist::MemorySpace Where>
[[nodiscard]] std::size_t labels_except([[maybe_unused]] const Q& queue, std::int64_t ignored,
                                        TensorView<const Label, Where> labels) {
  const IndexRange all{0, labels.size()};
  const IsCountedLabel<Label> is_counted{labels.data(), ignored};
  if constexpr (Where::host_accessible)
    return Cpu::Queue::transform_reduce(sum, all, is_counted);
  else
    return queue.start_transform_reduce(sum, all, is_counted).value();
}

/// Returns the number of examples of this replica that count in a loss. Waits for the queue if the loss ignores labels
/// in device memory.
template <class Q, class L, class T, class Target, dist::MemorySpace Where>
[[nodiscard]] std::size_t counted_examples([[maybe_unused]] const Q& queue, [[maybe_unused]] const L& loss,
                                           TensorView<const T, Where> outputs,
                                           [[maybe_unused]] TensorView<const Target, Where> targets) {
  if constexpr (IgnoresClass<L>)
    if (ignores_labels(loss)) return labels_except(queue, loss.ignore_class, targets);
  return rows_of_examples<L>(outputs).rows();
}

}  // namespace detail

/// Returns the number of labels of all replicas other than `ignore_class`: the global batch size of a loss of labels of
/// elements, or a loss that ignores labels. A collective call. Waits for labels in device memory.
template <Values Labels>
[[nodiscard]] std::size_t count_labels(const InReplica auto& replica, const Labels& labels,
                                       std::int64_t ignore_class = ignore_none) {
  const std::uint64_t mine = detail::labels_except(replica.queue(), ignore_class, values_of(labels));
  return static_cast<std::size_t>(replica.all_reduce(sum, mine));
}
/// Returns the number in a traced step, where `labels` are a part of its batch: a traced number.
template <class Labels>
[[nodiscard]] auto count_labels(const InTrace auto& replica, const Labels& labels,
                                std::int64_t ignore_class = ignore_none) {
  return replica.all_reduce(sum, traced_labels_except(LabelsInTrace{}, replica, ignore_class, labels));
}

}  // namespace dist::nn
