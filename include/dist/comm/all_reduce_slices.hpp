#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/communicator.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

namespace detail {

/// Throws ShapeMismatch if the shapes differ.
inline void require_one_dense_shape(std::size_t rank, const Shape& its, const Shape& of_first) {
  if (its != of_first)
    throw ShapeMismatch(concat("The indexed slices of replica ", rank, " cannot be reduced with replica 0's"),
                        concat("their arrays have shapes ", to_string(its), " and ", to_string(of_first)),
                        "Give slices of the same array on every replica");
}

/// The slices of all members, concatenated in rank order, and each member's number of rows. A collective call.
template <class T>
struct GatheredSlices {
  std::vector<std::size_t> rows;  // per member
  IndexedSlices<T> slices;
};
template <class Collectives, class T>
[[nodiscard]] GatheredSlices<T> gather_slices(const Collectives& collectives, std::string_view operation,
                                              const IndexedSlicesView<T>& mine) {
  struct Extent {
    std::size_t rows;
    Shape dense_shape;
  };
  const std::size_t members = collectives.communicator().size();
  std::vector<Extent> extents(members);
  collectives.all_gather_values(operation, Extent{mine.rows(), mine.dense_shape()}, std::span<Extent>{extents});

  std::vector<std::size_t> rows(members);
  std::vector<std::size_t> elements(members);
  for (std::size_t rank = 0; rank < members; ++rank) {
    require_one_dense_shape(rank, extents[rank].dense_shape, extents[0].dense_shape);
    rows[rank] = extents[rank].rows;
    elements[rank] = rows[rank] * mine.values().row_size();
  }
  IndexedSlices<T> all(std::accumulate(rows.begin(), rows.end(), std::size_t{0}), mine.dense_shape());
  collectives.all_gather(mine.indices(), std::span<const std::size_t>{rows}, all.indices());
  collectives.all_gather(mine.values().elements(), std::span<const std::size_t>{elements}, all.values().elements());
  return {std::move(rows), std::move(all)};
}

}  // namespace detail

/// Returns the slices of all replicas, concatenated in rank order, including duplicates (spec H10). Mean divides by the
/// number of replicas, `replicas_of_member` per member. Replicas may have different numbers of rows, including 0.
/// Throws ShapeMismatch, naming the replicas, if the dense shapes differ. A collective call.
template <class Collectives, class Op, class T>
[[nodiscard]] IndexedSlices<T> all_reduce_slices(const Collectives& collectives, Op, const IndexedSlicesView<T>& mine,
                                                 std::size_t replicas_of_member = 1) {
  static_assert(
      std::same_as<Op, Sum> || std::same_as<Op, Mean>,
      "indexed slices are reduced by sum or mean, in which missing rows count as zero: give dist::sum or dist::mean");
  if constexpr (detail::require_reduce_op<Op, T>()) {
    constexpr bool is_mean = std::same_as<Op, Mean>;
    constexpr std::string_view operation = is_mean ? "mean of indexed slices" : "sum of indexed slices";
    IndexedSlices<T> all = detail::gather_slices(collectives, operation, mine).slices;
    if constexpr (is_mean) {
      const std::size_t replicas = collectives.communicator().size() * replicas_of_member;
      for (T& value : all.values().elements()) value = Op::finish(value, replicas);
    }
    return all;
  }
}

/// Calls `use(members, slices_of)` on every replica; `slices_of(rank)` returns a replica's slices. Replicas that share
/// memory read them in place. Returns when no replica uses them any more. Throws ShapeMismatch if the dense shapes
/// differ. A collective call.
template <class Collectives, class T, class Use>
void with_slices_of_all(const Collectives& collectives, const IndexedSlicesView<T>& mine, Use&& use) {
  const auto comm = collectives.communicator();
  using Comm = std::remove_const_t<decltype(comm)>;
  if constexpr (SharesMemory<Comm>) {
    const detail::Borrowed loan{comm};
    comm.publish({.operation = "use of indexed slices", .reduction = dtype_name<T>}, {.read = &mine});
    const auto slices_of = [&](std::size_t rank) -> const IndexedSlicesView<T>& {
      return *comm.template peer<IndexedSlicesView<T>>(rank);
    };
    for (std::size_t rank = 1; rank < comm.size(); ++rank)
      detail::require_one_dense_shape(rank, slices_of(rank).dense_shape(), slices_of(0).dense_shape());
    use(comm.size(), slices_of);
    comm.barrier();
  } else if constexpr (GroupOfOne<Comm>) {
    use(comm.size(), [&](std::size_t) -> const IndexedSlicesView<T>& { return mine; });
  } else {
    const auto [rows, slices] = detail::gather_slices(collectives, "use of indexed slices", mine);
    std::vector<IndexedSlicesView<T>> views;
    views.reserve(rows.size());
    std::size_t first = 0;
    for (const std::size_t count : rows) {
      views.push_back(
          {slices.indices().subspan(first, count), slices.values().rows(first, count), slices.dense_shape()});
      first += count;
    }
    use(views.size(), [&](std::size_t rank) -> const IndexedSlicesView<T>& { return views[rank]; });
  }
}

/// Returns the dense array. Rows with the same index are added, missing rows are zero (spec P14). Sums of 16-bit types
/// are rounded once.
template <class T>
[[nodiscard]] Tensor<T> densify(const IndexedSlicesView<T>& slices) {
  if constexpr (detail::require_reduce_op<Sum, T>()) {
    using Wide = Accumulator<T>;
    Tensor<Wide> sums{slices.dense_shape()};
    std::fill(sums.elements().begin(), sums.elements().end(), Wide{0});
    for (std::size_t row = 0; row < slices.rows(); ++row)
      detail::combine(sum, sums.view().row(static_cast<std::size_t>(slices.indices()[row])).elements(),
                      slices.values().row(row).data());
    if constexpr (std::same_as<Wide, T>) {
      return sums;
    } else {
      Tensor<T> dense{slices.dense_shape()};
      for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = static_cast<T>(sums[i]);
      return dense;
    }
  }
}

/// Returns the slices with each index once, in ascending order; the values of an index are added in the given order
/// (spec P14). Sums of 16-bit types are rounded once.
template <class T>
[[nodiscard]] IndexedSlices<T> deduplicate(const IndexedSlicesView<T>& slices) {
  if constexpr (detail::require_reduce_op<Sum, T>()) {
    const std::span<const std::int64_t> indices = slices.indices();
    std::vector<std::size_t> order(slices.rows());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return indices[a] < indices[b]; });
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      if (i == 0 || indices[order[i]] != indices[order[i - 1]]) ++distinct;

    IndexedSlices<T> unique(distinct, slices.dense_shape());
    std::vector<Accumulator<T>> sums(slices.values().row_size());
    std::size_t next = 0;
    for (std::size_t row = 0; row < distinct; ++row) {
      const std::int64_t index = indices[order[next]];
      std::copy_n(slices.values().row(order[next]).data(), sums.size(), sums.data());
      for (++next; next < order.size() && indices[order[next]] == index; ++next)
        detail::combine(sum, std::span{sums}, slices.values().row(order[next]).data());
      unique.indices()[row] = index;
      T* const target = unique.values().row(row).data();
      for (std::size_t i = 0; i < sums.size(); ++i) target[i] = static_cast<T>(sums[i]);
    }
    return unique;
  }
}

}  // namespace dist
