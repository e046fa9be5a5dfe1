#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/never.hpp>
#include <dist/nn/losses/global_batch_size.hpp>

namespace dist::nn {

template <std::floating_point T>
struct AverageLossOptions {
  /// One weight per example; none means 1 for all.
  std::optional<std::span<const T>> sample_weight = std::nullopt;
  /// Examples of all replicas together. Left out, it is taken to be the local count times the replicas, which
  /// gives the examples of a short batch more weight (spec P02).
  std::optional<GlobalBatchSize> global_batch_size = std::nullopt;
};

namespace detail {

template <std::floating_point T>
[[nodiscard]] T average_loss(std::span<const T> per_example, const std::optional<std::span<const T>>& weight,
                             std::size_t global_batch) {
  if (weight && weight->size() != per_example.size())
    throw ShapeMismatch("compute_average_loss got sample weights that do not fit the losses",
                        text(weight->size(), " weights for ", per_example.size(), " losses"),
                        "Give one weight per example, or none");
  double total = 0;
  for (std::size_t i = 0; i < per_example.size(); ++i)
    total += static_cast<double>(weight ? per_example[i] * (*weight)[i] : per_example[i]);
  return global_batch == 0 ? T{0} : static_cast<T>(total / static_cast<double>(global_batch));
}

}  // namespace detail

/// The sum of this replica's weighted per-example losses over the global batch size; 0 for a global batch of
/// no examples (spec P01). Summed over the replicas it is the mean loss. Throws ShapeMismatch, and InvalidArgument when
/// this replica has more examples than the global batch.
template <std::floating_point T>
[[nodiscard]] std::remove_const_t<T> compute_average_loss(const InReplica auto& replica, std::span<T> per_example,
                                                          AverageLossOptions<std::remove_const_t<T>> options = {}) {
  const GlobalBatchSize local = per_example.size() * replica.num_replicas_in_sync();
  if (options.global_batch_size)
    detail::require_global_batch_size(*options.global_batch_size, per_example.size(), replica.replica_id().index(),
                                      replica.num_replicas_in_sync());
  return detail::average_loss<std::remove_const_t<T>>(per_example, options.sample_weight,
                                                      options.global_batch_size.value_or(local).value());
}

/// The same outside replica functions, where the global batch size cannot be left out: how many examples a replica has
/// is not known there. Throws InvalidArgument without it, and when it is less than these losses.
template <std::floating_point T>
[[nodiscard]] std::remove_const_t<T> compute_average_loss(const InCrossReplica auto&, std::span<T> per_example,
                                                          AverageLossOptions<std::remove_const_t<T>> options) {
  if (!options.global_batch_size)
    throw InvalidArgument("compute_average_loss was called outside a replica function without a global batch size",
                          "the number of examples of each replica is not known there",
                          "Give .global_batch_size, or call it in a replica function");
  detail::require_global_batch_size(*options.global_batch_size, per_example.size(), 0, 1);
  return detail::average_loss<std::remove_const_t<T>>(per_example, options.sample_weight,
                                                      options.global_batch_size->value());
}
template <InCrossReplica Context, std::floating_point T>
T compute_average_loss(const Context&, std::span<T>) {
  static_assert(dist::detail::never<Context>,
                "compute_average_loss without a global batch size is called in a replica function (spec P01): outside, "
                "give .global_batch_size");
  return T{0};
}

/// A regularisation loss over the number of replicas: every replica computes all of it, and the sum over the
/// replicas must count it once (spec P03).
template <std::floating_point T>
[[nodiscard]] T scale_regularization_loss(const InReplica auto& replica, T loss) {
  return loss / static_cast<T>(replica.num_replicas_in_sync());
}
/// The same of the sum of several.
template <std::floating_point T>
[[nodiscard]] std::remove_const_t<T> scale_regularization_loss(const InReplica auto& replica, std::span<T> losses) {
  double total = 0;
  for (const T loss : losses) total += static_cast<double>(loss);
  return scale_regularization_loss(replica, static_cast<std::remove_const_t<T>>(total));
}
template <InCrossReplica Context, class Loss>
double scale_regularization_loss(const Context&, const Loss&) {
  static_assert(
      dist::detail::never<Context>,
      "scale_regularization_loss is called in a replica function (spec P03): outside, a regularisation loss is "
      "counted once as it is");
  return 0;
}

}  // namespace dist::nn
