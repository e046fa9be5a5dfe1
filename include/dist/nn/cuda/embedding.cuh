#pragma once

#include <concepts>
#include <cstddef>
#include <deque>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/pending.hpp>
#include <dist/nn/cuda/elementwise.cuh>
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

/// The place before of the same id in a batch, and whether there is one after.
struct IdLink {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t before;
  std::size_t is_last;
};
struct UnlinkIds {
  IdLink* links;
  DIST_HD void operator()(std::size_t i) const { links[i] = {IdLink::none, 1}; }
};
template <std::size_t Words, class T>
struct LinkIds {
  const T* ids;
  IdLink* links;
  DIST_HD void operator()(std::size_t i) const {
    const std::size_t row = row_of_id<Words>(ids[i]);
    if (row == Words) {
      links[i].is_last = 0;  // it has no gradient
      return;
    }
    for (std::size_t before = i; before-- > 0;)
      if (row_of_id<Words>(ids[before]) == row) {
        links[i].before = before;
        links[before].is_last = 0;
        return;
      }
  }
};
/// The gradient of a row of the table, at the last place of its id.
template <std::size_t Words, std::size_t Width, class T>
struct AddOverLinks {
  const T* ids;
  const T* dy;
  const IdLink* links;
  T* gradient;
  DIST_HD void operator()(std::size_t i) const {
    const std::size_t last = i / Width, column = i % Width;
    if (links[last].is_last == 0) return;
    T sum{0};
    for (std::size_t at = last; at != IdLink::none; at = links[at].before) sum += dy[at * Width + column];
    gradient[row_of_id<Words>(ids[last]) * Width + column] = sum;
  }
};

/// Rows of a table by their numbers. The host does not wait for the ids of a batch: an id that is no number of a row gives a
/// vector of NaN, and the error comes from a later call, when the GPU has told.
///
/// The gradient is added up from the last place of an id to the first, so that its bits are the same each time. Each place
/// looks for the one before with the same id, which takes as many comparisons as the square of the number of places at most.
template <std::size_t Words, std::size_t Width, class T>
class Embedding {
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
    auto* const links = reinterpret_cast<IdLink*>(state.workspace(ids.size() * sizeof(IdLink)));
    queue.fill(gradient.elements(), T{0});
    queue.for_each({0, ids.size()}, UnlinkIds{links});
    queue.for_each({0, ids.size()}, LinkIds<Words, T>{ids.data(), links});
    queue.for_each({0, dy.size()}, AddOverLinks<Words, Width, T>{ids.data(), dy.data(), links, gradient.data()});
  }

 private:
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
};

}  // namespace dist::nn::cuda
