#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>

namespace dist::nn {

template <std::floating_point T>
struct AverageLossOptions {
  /// One weight per example; none means 1 for all.
  std::optional<std::span<const T>> sample_weight = std::nullopt;
  /// Examples of all replicas together. Left out, it is taken to be the local count times the replicas, which
  /// gives the examples of a short batch more weight (spec P02).
  std::optional<std::size_t> global_batch_size = std::nullopt;
};

/// The sum of this replica's weighted per-example losses over the global batch size; 0 for a global batch of
/// 0 (spec P01). Summed over the replicas it is the mean loss. Throws ShapeMismatch.
template <std::floating_point T>
[[nodiscard]] T compute_average_loss(const InReplica auto& replica, std::span<const T> per_example,
                                     std::type_identity_t<AverageLossOptions<T>> options = {}) {
  const std::optional<std::span<const T>> weight = options.sample_weight;
  if (weight && weight->size() != per_example.size())
    throw ShapeMismatch("compute_average_loss got sample weights that do not fit the losses",
                        text(weight->size(), " weights for ", per_example.size(), " losses"),
                        "Give one weight per example, or none");
  double total = 0;
  for (std::size_t i = 0; i < per_example.size(); ++i)
    total += static_cast<double>(weight ? per_example[i] * (*weight)[i] : per_example[i]);
  const std::size_t examples = options.global_batch_size.value_or(per_example.size() * replica.num_replicas_in_sync());
  return examples == 0 ? T{0} : static_cast<T>(total / static_cast<double>(examples));
}

/// A regularisation loss over the number of replicas: every replica computes all of it, and the sum over the
/// replicas must count it once (spec P03).
template <std::floating_point T>
[[nodiscard]] T scale_regularization_loss(const InReplica auto& replica, T loss) {
  return loss / static_cast<T>(replica.num_replicas_in_sync());
}
/// The same of the sum of several.
template <std::floating_point T>
[[nodiscard]] T scale_regularization_loss(const InReplica auto& replica, std::span<const T> losses) {
  double total = 0;
  for (const T loss : losses) total += static_cast<double>(loss);
  return scale_regularization_loss(replica, static_cast<T>(total));
}

}  // namespace dist::nn
