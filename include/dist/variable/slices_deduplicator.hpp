#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/device/queue_scopes.hpp>
#include <dist/device/thrust_policy.hpp>
#include <dist/variable/replica_buffer.hpp>

namespace dist {

namespace detail {

struct NumberRows {
  std::size_t* number;
  DIST_HD void operator()(std::size_t i) const { number[i] = i; }
};

/// Computes one element of a row of sums: the sum of the rows `number[first[row]]` to `number[first[row + 1]]`, in
/// order.
template <class T>
struct AddRows {
  const T* values;
  const std::size_t* number;
  const std::size_t* first;
  std::size_t sums;  // number of sum rows
  std::size_t rows;
  std::size_t width;
  T* to;
  DIST_HD void operator()(std::size_t at) const {
    const std::size_t row = at / width, column = at % width;
    const std::size_t end = row + 1 < sums ? first[row + 1] : rows;
    auto added = static_cast<Accumulator<T>>(values[number[first[row]] * width + column]);
    for (std::size_t i = first[row] + 1; i < end; ++i)
      added = Sum{}(added, static_cast<Accumulator<T>>(values[number[i] * width + column]));
    to[at] = static_cast<T>(added);
  }
};

}  // namespace detail

/// `deduplicate` for slices in the memory of the replicas' devices, such as the gradient of an embedding on a GPU. Uses
/// Thrust and a kernel in the replica's queue. The results are bitwise equal to `deduplicate`.
///
///     dist::SlicesDeduplicator<Strategy, float> slices{strategy, table.shape(), 4096};
///     strategy.run([&](auto& replica) {
///       const auto unique = slices.deduplicate(replica, indices.component(replica), gradient.component(replica));
///     });
///
/// The strategy must outlive it. Programs for GPUs must also include `<dist/device/cuda/thrust_policy.cuh>`.
template <Strategy S, Reducible T>
class SlicesDeduplicator {
  using Device = typename S::Device;
  template <class E>
  using Span = typename Device::template Span<E>;

 public:
  /// Row i of `values` belongs to row `indices[i]`. Both are in the memory of the replica's device.
  struct Slices {
    Span<const std::int64_t> indices;  ///< rows of the whole array
    Span<const T> values;              ///< one row for each index
  };

  /// Allocates memory for `most_rows` rows of an array of shape `dense_shape` on each replica, and four numbers per
  /// row. Throws ShapeMismatch for a scalar shape, and OutOfMemory.
  SlicesDeduplicator(S& strategy, Shape dense_shape, std::size_t most_rows)
      : dense_shape_(IndexedSlices<T>(0, dense_shape).dense_shape()),  // rejects a scalar
        sorted_(strategy.template buffer<std::int64_t>(Shape{most_rows}, "Sorted indices")),
        number_(strategy.template buffer<std::size_t>(Shape{most_rows}, "Rows in the order of indices")),
        unique_(strategy.template buffer<std::int64_t>(Shape{most_rows}, "Unique indices")),
        first_(strategy.template buffer<std::size_t>(Shape{most_rows}, "First rows of indices")),
        sums_(strategy.template buffer<T>(dense_shape.with_rows(most_rows), "Sums of rows")) {}

  /// Returns the rows with unique indices in ascending order; values of one index are added in the original order (spec
  /// P14). Sums of 16-bit types are rounded once. Not a collective call. The result is valid until the replica's next
  /// call. Waits for the queue to get the number of rows. Throws ShapeMismatch unless there is one row of values per
  /// index, InvalidArgument if there are more than `most_rows` rows, or an index is out of range for `dense_shape`.
  template <InReplica Replica>
  [[nodiscard]] Slices deduplicate(const Replica& replica, Span<const std::int64_t> indices, Span<const T> values) {
    const std::size_t rows = indices.size();
    const std::size_t width = dense_shape_.row().elements();
    require_fit(rows, values.size(), width);
    const auto unique = unique_.component(replica);
    const auto sums = sums_.component(replica);
    if (rows == 0) return {unique.first(0), sums.first(0)};

    const auto& queue = replica.queue();
    const auto sorted = sorted_.component(replica).first(rows);
    std::size_t* const number = number_.component(replica).data();
    std::size_t* const first = first_.component(replica).data();
    queue.copy(indices, sorted);
    queue.for_each({0, rows}, detail::NumberRows{number});
    const auto policy = thrust_policy(replica);
    thrust::stable_sort_by_key(policy, sorted.data(), sorted.data() + rows, number);
    std::int64_t least = 0, most = 0;
    [[maybe_unused]] const CopiesOfScope<std::remove_cvref_t<decltype(queue)>> copies{queue};
    queue.copy(sorted.first(1), std::span{&least, 1});
    queue.copy(sorted.subspan(rows - 1), std::span{&most, 1});
    const auto ends = thrust::unique_by_key_copy(policy, sorted.data(), sorted.data() + rows,
                                                 thrust::counting_iterator<std::size_t>{0}, unique.data(), first);
    queue.wait();
    detail::require_row(least, dense_shape_);
    detail::require_row(most, dense_shape_);
    const auto distinct = static_cast<std::size_t>(ends.second - first);
    queue.for_each({0, distinct * width},
                   detail::AddRows<T>{values.data(), number, first, distinct, rows, width, sums.data()});
    return {unique.first(distinct), sums.first(distinct * width)};
  }

 private:
  template <class E>
  using Buffer = ReplicaBuffer<E, Device>;

  void require_fit(std::size_t rows, std::size_t elements, std::size_t width) const {
    if (elements != rows * width)
      throw ShapeMismatch(
          "Indexed slices do not fit together",
          concat(rows, " indices and ", elements, " values for an array of shape ", to_string(dense_shape_)),
          "Give one row of values, of the array's row shape, for each index");
    if (rows > sorted_.size())
      throw InvalidArgument("A SlicesDeduplicator is too small for the indexed slices",
                            concat(rows, " rows, and room for ", sorted_.size()), "Make it with room for more rows");
  }

  Shape dense_shape_;
  Buffer<std::int64_t> sorted_;
  Buffer<std::size_t> number_;
  Buffer<std::int64_t> unique_;
  Buffer<std::size_t> first_;
  Buffer<T> sums_;
};

}  // namespace dist
