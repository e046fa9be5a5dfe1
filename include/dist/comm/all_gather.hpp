#pragma once

#include <cstddef>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/hash.hpp>
#include <dist/core/memory_space.hpp>

namespace dist {

/// Gives every member the values of all members, concatenated in rank order (spec E06, H21). `counts[rank]` values
/// are that member's; all members know all counts, and members that give different counts get a CollectiveMismatch.
/// `mine` may be this member's part of `all`. A collective call.
template <SharesMemory C, class T>
void all_gather(const C& comm, std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) {
  DIST_EXPECT(counts.size() == comm.size() && mine.size() == counts[comm.rank()]);
  DIST_EXPECT(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) == all.size());
  const detail::Borrowed loan{comm};
  comm.publish({.operation = "all_gather",
                .elements = all.size(),
                .dtype = dtype_name<T>,
                .counts = detail::hash_of_numbers(counts)},
               {.read = mine.data()});
  T* place = all.data();
  for (std::size_t rank = 0; rank < comm.size(); ++rank) {
    const T* const theirs = comm.template peer<T>(rank);
    if (theirs != place) std::copy_n(theirs, counts[rank], place);
    place += counts[rank];
  }
  comm.barrier();
}

}  // namespace dist
