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
#include <dist/nn/reference/embedding.hpp>

namespace dist::nn::cuda {

/// The number of the row that an id names; `Words` where there is none.
template <std::size_t Words, class T>
[[nodiscard]] DIST_HD std::size_t row_of_id(T id) {
  return id >= T{0} && id < static_cast<T>(Words) ? static_cast<std::size_t>(id) : Words;
}

/// A vector for each id; of NaN where the table has none.
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

/// An id that the table does not have, and its place in the batch.
template <class T>
struct UnknownId {
  std::size_t place;
  T id;
};
/// The first one.
template <class T>
struct FirstUnknown : ::dist::detail::IdentityFinish {
  using Record = UnknownId<T>;
  static constexpr std::size_t no_place = static_cast<std::size_t>(-1);
  template <std::same_as<Record>>
  static constexpr Record identity{no_place, T{0}};
  DIST_HD Record operator()(const Record& a, const Record& b) const { return a.place <= b.place ? a : b; }
};
template <std::size_t Words, class T>
struct LookForUnknown {
  const T* ids;
  DIST_HD UnknownId<T> operator()(std::size_t i) const {
    return {row_of_id<Words>(ids[i]) < Words ? FirstUnknown<T>::no_place : i, ids[i]};
  }
};

/// The row that each id names, and the number of the id, for a sort by rows.
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
/// The gradient of a row of the table, where the ids that name it begin in the sorted order. What is no id has none.
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
    gradient[row * Width + column] = sum;
  }
};

/// Rows of a table by their numbers. The host does not wait for the ids of a batch: an id that is no number of a row gives a
/// vector of NaN, and the error comes from a later call, when the GPU has told.
///
/// For the gradient, CUB sorts the ids by the rows that they name, and keeps their order in a row: the gradient of a row is
/// added up in the order of the batch, as on the host.
template <std::size_t Words, std::size_t Width, class T>
  requires(Words > 0)
class Embedding<Words, Width, T> {
 public:
  /// Throws InvalidArgument for an id of an earlier batch that is no number of a row.
  void forward(State& state, View<const T> ids, View<const T> table, View<T> y) {
    refuse_unknown();
    state.queue().for_each({0, y.size()}, LookUp<Words, Width, T>{ids.data(), table.data(), y.data()});
    if (ids.size() > 0)
      looked_for_.push_back(state.queue().start_transform_reduce(FirstUnknown<T>{}, {0, ids.size()},
                                                                 LookForUnknown<Words, T>{ids.data()}));
  }

  /// Of all rows; those that no id names have none.
  void table_gradient(State& state, View<const T> ids, View<const T> dy, View<T> gradient) {
    const auto& queue = state.queue();
    queue.fill(gradient.elements(), T{0});
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
  static_assert(Words < 0xffffffffU, "nn::Embedding on a GPU has fewer than 2^32 - 1 words");

  /// Into the sorted memory, by `storage`; without that, says how many bytes it needs.
  void sort(State& state, void* storage, std::size_t& bytes, std::size_t count) {
    dist::cuda::check(cub::DeviceRadixSort::SortPairs(storage, bytes, rows_.data(), sorted_rows_.data(),
                                                      numbers_.data(), sorted_numbers_.data(), count, 0,
                                                      std::bit_width(Words), state.queue().stream().get()),
                      "cub::DeviceRadixSort::SortPairs", state.queue().stream().device());
  }
  /// Where it is known, without waiting.
  void refuse_unknown() {
    while (!looked_for_.empty() && looked_for_.front().is_done()) {
      const Looked first = looked_for_.front();
      looked_for_.pop_front();
      UnknownId<T> found = FirstUnknown<T>::template identity<UnknownId<T>>;
      try {
        found = first.value();
      } catch (const Error&) {  // the batch was not computed, which a wait has said
      }
      if (found.place != FirstUnknown<T>::no_place) reference::refuse_id<Words>(found.place, found.id);
    }
  }

  using Looked = Pending<UnknownId<T>, dist::cuda::Queue>;
  std::deque<Looked> looked_for_;
  Memory<std::uint32_t> rows_, numbers_, sorted_rows_, sorted_numbers_;
};

}  // namespace dist::nn::cuda
