#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/cuda/state.cuh>

namespace dist::nn::cuda {

/// What one of the lanes of a segment adds to its sums: every term by as many as there are lanes.
template <class Terms>
struct SumLane {
  using Sum = typename Terms::Sum;
  Terms terms;
  std::size_t size, lanes;
  Sum* to;

  DIST_HD void operator()(std::size_t i) const {
    Sum sums[Terms::count] = {};
    for (std::size_t term = i % lanes; term < size; term += lanes) terms(i / lanes, term, sums);
    for (std::size_t which = 0; which < Terms::count; ++which) to[i * Terms::count + which] = sums[which];
  }
};
template <class Sum>
struct AddLanes {
  const Sum* of_lanes;
  std::size_t lanes, count;
  Sum* to;

  DIST_HD void operator()(std::size_t i) const {
    const std::size_t segment = i / count, which = i % count;
    Sum sum{};
    for (std::size_t lane = 0; lane < lanes; ++lane) sum += of_lanes[(segment * lanes + lane) * count + which];
    to[i] = sum;
  }
};

/// `Terms::count` sums of each of `segments` runs of `size` terms, all of a segment together, in the state's workspace.
/// `terms(segment, term, sums)` adds what a term brings. A `Terms::Sum` starts as the one that adds nothing, and has +=. In
/// the same order for a size, so that the same terms give the same bits.
///
/// Neighbouring threads, the lanes of a segment, add neighbouring terms, so that they read memory together.
template <class Terms>
[[nodiscard]] const typename Terms::Sum* sum_segments(State& state, std::size_t segments, std::size_t size,
                                                      const Terms& terms) {
  using Sum = typename Terms::Sum;
  std::size_t lanes = 1;
  while (lanes < 256 && 16 * lanes < size) lanes *= 2;
  const std::size_t count = segments * Terms::count;
  if (lanes == 1) {
    auto* const sums = reinterpret_cast<Sum*>(state.workspace(count * sizeof(Sum)));
    state.queue().for_each({0, segments}, SumLane<Terms>{terms, size, lanes, sums});
    return sums;
  }
  auto* const sums = reinterpret_cast<Sum*>(state.workspace((1 + lanes) * count * sizeof(Sum)));
  Sum* const of_lanes = sums + count;
  state.queue().for_each({0, segments * lanes}, SumLane<Terms>{terms, size, lanes, of_lanes});
  state.queue().for_each({0, count}, AddLanes<Sum>{of_lanes, lanes, Terms::count, sums});
  return sums;
}

}  // namespace dist::nn::cuda
