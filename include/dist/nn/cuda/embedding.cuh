#pragma once

#include <cub/device/device_radix_sort.cuh>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/pending.hpp>
#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/memory.cuh>
#include <dist/nn/cuda/state.cuh>
#include <dist/nn/reference/layers.hpp>

namespace dist::nn::cuda {

/// The row of an id, or `Words` if it is out of range.
template <std::size_t Words, class T>
[[nodiscard]] DIST_HD std::size_t row_of_id(T id) {
  return id >= T{0} && id < static_cast<T>(Words) ? static_cast<std::size_t>(id) : Words;
}

/// Copies the vector of each id; NaN if the id is out of range.
template <std::size_t Words, std::size_t Width, class T>
struct LookUp {
  const T* ids;
  const T* table;
  T* y;
  DIST_HD void operator()(std::size_t i) const {
    const std::size_t row = row_of_id<Words>(ids[i / Width]);
    y[i] = row < Words ? table[row * Width + i % Width] : ::dist::detail::quiet_nan<T>;
  }
};

/// An id out of range, and its index in the batch.
template <class T>
struct UnknownId {
  std::size_t place;
  T id;
};
/// Reduces to a batch's first unknown id.
template <class T>
struct FirstUnknown : ::dist::detail::IdentityFinish {
  using Record = UnknownId<T>;
  static constexpr std::size_t no_place = static_cast<std::size_t>(-1);
  template <std::same_as<Record>>
  static constexpr Record identity{no_place, T{0}};
  DIST_HD Record operator()(const Record& a, const Record& b) const { return a.place <= b.place ? a : b; }
};
/// The id at an index, if it is unknown.
template <std::size_t Words, class T>
struct LookForUnknown {
  const T* ids;
  DIST_HD UnknownId<T> operator()(std::size_t i) const {
    return {row_of_id<Words>(ids[i]) < Words ? FirstUnknown<T>::no_place : i, ids[i]};
  }
};

/// Writes the row and the index of each id, to be sorted by row.
template <std::size_t Words, class T>
struct NumberIds {
  const T* ids;
  std::uint32_t* rows;
  std::uint32_t* numbers;
  DIST_HD void operator()(std::size_t i) const {
    rows[i] = static_cast<std::uint32_t>(row_of_id<Words>(ids[i]));
    numbers[i] = static_cast<std::uint32_t>(i);
  }
};
/// Adds the slopes of a table row to its gradient, at the first of its sorted ids. Ids out of range have none.
template <std::size_t Words, std::size_t Width, class T>
struct AddSlopesOfRow {
  const std::uint32_t* rows;
  const std::uint32_t* numbers;
  std::size_t ids;
  const T* dy;
  T* gradient;
  DIST_HD void operator()(std::size_t at) const {
    const std::size_t first = at / Width, column = at % Width;
    const std::uint32_t row = rows[first];
    if (row == Words || (first > 0 && rows[first - 1] == row)) return;
    T sum{0};
    for (std::size_t i = first; i < ids && rows[i] == row; ++i) sum += dy[numbers[i] * Width + column];
    gradient[row * Width + column] += sum;
  }
};

/// Looks up rows of a table, asynchronously: an id out of range gives a NaN vector, and a later call throws.
///
/// For the gradient, CUB sorts the ids by row, stably, so a row's gradient is summed in batch order, like on the
/// host.
template <std::size_t Words, std::size_t Width, class T>
  requires(Words > 0)
class Embedding<Words, Width, T> {
 public:
  /// Throws InvalidArgument if an id of an earlier batch was out of range.
  void forward(State& state, View<const T> ids, View<const T> table, View<T> y) {
    refuse_unknown();
    state.queue().for_each({0, y.size()}, LookUp<Words, Width, T>{ids.data(), table.data(), y.data()});
    if (ids.size() > 0)
      looked_for_.push_back(state.queue().start_transform_reduce(FirstUnknown<T>{}, {0, ids.size()},
                                                                 LookForUnknown<Words, T>{ids.data()}));
  }

  /// Adds to the gradient of the table. Rows without an id in the batch stay as they are.
  void add_table_gradient(State& state, View<const T> ids, View<const T> dy, View<T> gradient) {
    const auto& queue = state.queue();
    const std::size_t count = ids.size();
    if (count == 0) return;
    for (Memory<std::uint32_t>* memory : {&rows_, &numbers_, &sorted_rows_, &sorted_numbers_})
      memory->reserve(queue, count);
    queue.for_each({0, count}, NumberIds<Words, T>{ids.data(), rows_.data(), numbers_.data()});
    std::size_t bytes = 0;
    sort(state, nullptr, bytes, count);
    sort(state, state.workspace(bytes), bytes, count);
    queue.for_each({0, dy.size()}, AddSlopesOfRow<Words, Width, T>{sorted_rows_.data(), sorted_numbers_.data(), count,
                                                                   dy.data(), gradient.data()});
  }

 private:
  static_assert(Words < 0xffffffffU, "nn::Embedding on a GPU must have fewer than 2^32 - 1 words");

  /// Sorts with temporary memory `storage`; if this is null, only sets `bytes` to its size.
  void sort(State& state, void* storage, std::size_t& bytes, std::size_t count) {
    dist::cuda::check(cub::DeviceRadixSort::SortPairs(storage, bytes, rows_.data(), sorted_rows_.data(),
                                                      numbers_.data(), sorted_numbers_.data(), count, 0,
                                                      std::bit_width(Words), state.queue().stream().get()),
                      "cub::DeviceRadixSort::SortPairs", state.queue().stream().device());
  }
  /// Throws InvalidArgument for an unknown id that the GPU has already reported.
  void refuse_unknown() {
    while (!looked_for_.empty() && looked_for_.front().is_done()) {
      const Looked first = looked_for_.front();
      looked_for_.pop_front();
      UnknownId<T> found = FirstUnknown<T>::template identity<UnknownId<T>>;
      try {
        found = first.value();
      } catch (const Error&) {  // the batch failed, and a wait has reported the error
      }
      if (found.place != FirstUnknown<T>::no_place) reference::refuse_id<Words>(found.place, found.id);
    }
  }

  using Looked = Pending<UnknownId<T>, dist::cuda::Queue>;
  std::deque<Looked> looked_for_;
  Memory<std::uint32_t> rows_, numbers_, sorted_rows_, sorted_numbers_;
};

}  // namespace dist::nn::cuda
