#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include <dist/context/contexts.hpp>
#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/losses/global_batch_size.hpp>

namespace dist::nn {

/// Options of `compute_average_loss`.
template <std::floating_point T, dist::MemorySpace Where = HostMemory>
struct AverageLossOptions {
  /// One weight per example, in the losses' memory; default 1.
  std::optional<SpanIn<const T, Where>> sample_weight = std::nullopt;
  /// Examples of all replicas. The default, local count times replicas, weights examples of a short batch more (spec
  /// P02).
  std::optional<GlobalBatchSize> global_batch_size = std::nullopt;
};

namespace detail {

template <class T>
struct WeightedLoss {
  const T* losses;
  const T* weights;  // null for none
  DIST_HD double operator()(std::size_t i) const {
    return static_cast<double>(weights != nullptr ? losses[i] * weights[i] : losses[i]);
  }
};

/// Returns the weighted sum of losses over the global batch size, computed by `queue`; waits for it.
template <std::floating_point T, dist::MemorySpace Where, class Queue>
[[nodiscard]] T average_loss(const Queue& queue, std::type_identity_t<SpanIn<const T, Where>> per_example,
                             const AverageLossOptions<T, Where>& options, std::size_t global_batch) {
  const auto& weight = options.sample_weight;
  if (weight && weight->size() != per_example.size())
    throw ShapeMismatch("compute_average_loss got sample weights that do not fit the losses",
                        concat(weight->size(), " weights for ", per_example.size(), " losses"),
                        "Give one weight per example, or none");
  const double total = queue.transform_reduce(sum, {0, per_example.size()},
                                              WeightedLoss<T>{per_example.data(), weight ? weight->data() : nullptr});
  return part_of_global_batch<T>(total, global_batch);
}

/// Returns one replica's part of the mean, computed by `queue`.
template <std::floating_point T, dist::MemorySpace Where, class Queue>
[[nodiscard]] T average_loss_of(const InReplica auto& replica, const Queue& queue,
                                std::type_identity_t<SpanIn<const T, Where>> per_example,
                                const AverageLossOptions<T, Where>& options) {
  const GlobalBatchSize local = per_example.size() * replica.num_replicas_in_sync();
  if (options.global_batch_size)
    require_global_batch_size(*options.global_batch_size, per_example.size(), replica.replica_id().index(),
                              replica.num_replicas_in_sync());
  return average_loss(queue, per_example, options, options.global_batch_size.value_or(local).value());
}

}  // namespace detail

/// Returns the weighted sum of this replica's losses over the global batch size; 0 for an empty global batch (spec
/// P01). Summed over the replicas, the mean loss. Throws ShapeMismatch, and InvalidArgument if this replica has more
/// examples than the global batch.
template <std::floating_point T>
[[nodiscard]] std::remove_const_t<T> compute_average_loss(const InReplica auto& replica, std::span<T> per_example,
                                                          AverageLossOptions<std::remove_const_t<T>> options = {}) {
  return detail::average_loss_of(replica, Cpu::Queue{}, per_example, options);
}
/// Returns this replica's part of the mean for losses in device memory. Waits for the queue.
template <std::floating_point T, dist::MemorySpace Where>
[[nodiscard]] std::remove_const_t<T> compute_average_loss(
    const InReplica auto& replica, DeviceSpan<T, Where> per_example,
    AverageLossOptions<std::remove_const_t<T>, Where> options = {}) {
  return detail::average_loss_of(replica, replica.queue(), per_example, options);
}

/// Returns the mean of losses outside replica functions, where the global batch size is required, because the replicas'
/// examples are unknown. Throws InvalidArgument without it, and if it is less than the number of losses.
template <std::floating_point T>
[[nodiscard]] std::remove_const_t<T> compute_average_loss(const InCrossReplica auto&, std::span<T> per_example,
                                                          AverageLossOptions<std::remove_const_t<T>> options) {
  if (!options.global_batch_size)
    throw InvalidArgument("compute_average_loss was called outside a replica function without a global batch size",
                          "the number of examples of each replica is unknown there",
                          "Give .global_batch_size, or call it in a replica function");
  detail::require_global_batch_size(*options.global_batch_size, per_example.size(), 0, 1);
  return detail::average_loss(Cpu::Queue{}, per_example, options, options.global_batch_size->value());
}
/// Reports a call without a global batch size outside replica functions.
template <InCrossReplica Context, std::floating_point T>
T compute_average_loss(const Context&, std::span<T>) {
  static_assert(dist::detail::always_false<Context>,
                "compute_average_loss without a global batch size must be called in a replica function (spec P01): "
                "outside, give .global_batch_size");
  return T{0};
}

/// Returns a regularisation loss over the number of replicas, because each computes it whole, and their sum must count
/// it once (spec P03).
template <std::floating_point T>
[[nodiscard]] T scale_regularization_loss(const InReplica auto& replica, T loss) {
  return loss / static_cast<T>(replica.num_replicas_in_sync());
}
/// Scales a regularisation loss in a traced step.
template <class Loss>
[[nodiscard]] Loss scale_regularization_loss(const InTrace auto& replica, Loss loss) {
  return loss / Loss{static_cast<typename Loss::Element>(replica.num_replicas_in_sync())};
}
/// Returns the sum of regularisation losses over the number of replicas (spec P03).
template <std::floating_point T>
[[nodiscard]] std::remove_const_t<T> scale_regularization_loss(const InReplica auto& replica, std::span<T> losses) {
  double total = 0;
  for (const T loss : losses) total += static_cast<double>(loss);
  return scale_regularization_loss(replica, static_cast<std::remove_const_t<T>>(total));
}
/// Reports a call outside replica functions.
template <InCrossReplica Context, class Loss>
double scale_regularization_loss(const Context&, const Loss&) {
  static_assert(dist::detail::always_false<Context>,
                "scale_regularization_loss must be called in a replica function (spec P03): outside, a regularisation "
                "loss counts once and needs no scaling");
  return 0;
}

}  // namespace dist::nn
