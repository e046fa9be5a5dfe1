#pragma once

#include <concepts>
#include <cstdint>

namespace dist::data {

/// A pass over a dataset that can be taken up again: `position()` is how many elements it has given, and `seek(position)`
/// makes it go on as if it had given so many, of the same epoch, under whatever number of replicas. What lies before is
/// not read again where that can be avoided.
///
/// Arrays, ranges, rows of CSV and folders of images have such passes; so have take, skip, zip, enumerate, map, random_map,
/// shuffle, batch, rebatch and prefetch of what has. Other files have not, nor have filter, repeat, concatenate, shard,
/// interleave, unbatch and cache: there, Model::fit reads again what lies before.
template <class I>
concept Resumable = requires(I iterator, const I& pass, std::uint64_t position) {
  { pass.position() } -> std::same_as<std::uint64_t>;
  iterator.seek(position);
};

/// Where a program is in its passes over a dataset, to be kept with what else outlives a run.
struct Position {
  std::uint64_t epoch = 0;
  std::uint64_t elements = 0;  ///< given in this epoch

  void track(auto& visit) {
    visit("epoch", epoch);
    visit("elements", elements);
  }
};

}  // namespace dist::data
