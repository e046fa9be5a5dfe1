/// Gradients of collectives, for layers and losses that call them in `forward`. The differentiated function is the sum
/// of all replicas' losses. A `backward` calls these functions in place of the collectives, on every replica.
///
///   struct Centred {  // y = x - mean over replicas of x
///     void forward(const auto& replica, std::span<double> x) {
///       std::vector<double> mean{x.begin(), x.end()};
///       replica.all_reduce(dist::mean, std::span<double>{mean});
///       for (std::size_t i = 0; i < x.size(); ++i) x[i] -= mean[i];
///     }
///     void backward(const auto& replica, std::span<double> gradient) {
///       std::vector<double> of_mean{gradient.begin(), gradient.end()};
///       dist::nn::all_reduce_gradient(replica, dist::mean, std::span<double>{of_mean});
///       for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= of_mean[i];
///     }
///   };
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include <dist/context/replica_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn {

namespace detail {

template <class Op>
constexpr void require_differentiable_reduction() {
  static_assert(std::same_as<Op, Sum> || std::same_as<Op, Mean>,
                "only all_reduce of dist::sum and dist::mean has a gradient here: other reductions are not linear, so "
                "their gradients need the values of the forward pass");
}

}  // namespace detail

/// Replaces the gradient of the result of `all_reduce(op, …)` by the gradient of this replica's operand: the same
/// reduction of the replicas' gradients (spec E05). A collective call.
template <Floating T, class Op>
void all_reduce_gradient(const InReplica auto& replica, Op op, std::span<T> gradient) {
  detail::require_differentiable_reduction<Op>();
  replica.all_reduce(op, gradient);
}
/// Returns the gradient of this replica's operand of a scalar `all_reduce(op, …)`, from the gradient of the result
/// (spec E05). A collective call.
template <Floating T, class Op>
[[nodiscard]] T all_reduce_gradient(const InReplica auto& replica, Op op, T gradient) {
  detail::require_differentiable_reduction<Op>();
  return replica.all_reduce(op, gradient);
}

/// Returns the gradient of this replica's operand of an all-gather on the first axis, where replica `r` had `rows[r]`
/// rows: its rows of the sum of the replicas' gradients (spec E07). Leaves the sum in `gradient`, which has the
/// gathered shape; the result is a view into it. Throws ShapeMismatch if `gradient` has other rows. A collective call.
template <Floating T>
[[nodiscard]] TensorView<T> all_gather_gradient(const InReplica auto& replica, TensorView<T> gradient,
                                                std::span<const std::size_t> rows) {
  const std::size_t rank = replica.replica_id().index();
  const std::size_t total = std::accumulate(rows.begin(), rows.end(), std::size_t{0});
  if (rows.size() != replica.num_replicas_in_sync() || gradient.shape().rank() == 0 || gradient.rows() != total)
    throw ShapeMismatch(
        "The gradient of an all-gather does not fit the gathered tensor",
        concat("shape ", to_string(gradient.shape()), " for ", total, " rows of ", rows.size(),
               " replicas, and the strategy has ", replica.num_replicas_in_sync()),
        "Give the gradient with respect to the gathered tensor, and the number of rows that each replica contributed");
  replica.all_reduce(sum, gradient.elements());
  return gradient.rows(std::accumulate(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0}),
                       rows[rank]);
}

/// Returns the gradient of this replica's operand of `replica.all_gather(mine, axis)`, with `extent` on the axis. A
/// collective call. Throws ShapeMismatch unless the replicas' extents add up to `gradient`'s, and InvalidArgument if it
/// has no such axis.
template <Floating T>
[[nodiscard]] Tensor<T> all_gather_gradient(const InReplica auto& replica, TensorView<T> gradient, std::size_t extent,
                                            int axis) {
  const std::size_t along = Axes::resolve(axis, gradient.shape());
  Tensor<std::size_t> mine{Shape{1}};
  mine[0] = extent;
  const Tensor<std::size_t> extents = replica.all_gather(mine, 0);
  const auto first = extents.elements().begin();
  const auto rank = static_cast<std::ptrdiff_t>(replica.replica_id().index());
  const std::size_t before = std::accumulate(first, first + rank, std::size_t{0});
  const std::size_t total = std::accumulate(first, extents.elements().end(), std::size_t{0});
  if (gradient.shape()[along] != total)
    throw ShapeMismatch(
        "The gradient of an all-gather does not fit the gathered tensor",
        concat("shape ", to_string(gradient.shape()), ", and the replicas contributed ", total, " along axis ", along),
        "Give the gradient with respect to the gathered tensor, and this replica's extent on the axis");
  replica.all_reduce(sum, gradient.elements());
  std::size_t extents_of_part[Shape::max_rank] = {};
  for (std::size_t each = 0; each < gradient.shape().rank(); ++each) extents_of_part[each] = gradient.shape()[each];
  extents_of_part[along] = extent;
  Tensor<T> part{Shape(std::span<const std::size_t>{extents_of_part, gradient.shape().rank()})};
  std::size_t inner = 1;
  for (std::size_t behind = along + 1; behind < gradient.shape().rank(); ++behind) inner *= gradient.shape()[behind];
  const T* from = gradient.data() + before * inner;
  for (std::size_t to = 0; to < part.size(); to += extent * inner, from += total * inner)
    std::copy_n(from, extent * inner, part.data() + to);
  return part;
}

}  // namespace dist::nn
