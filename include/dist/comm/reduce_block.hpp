#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/streaming.hpp>
#include <dist/core/vectors.hpp>

namespace dist::detail {

/// Elements that are reduced at a time: few enough that the sums stay in the first-level cache between passes, and that
/// the processor begins to read the next block while it works on this one.
template <class T>
inline constexpr std::size_t block_elements = 2048 / sizeof(T);

/// result[i] = value of member 0 (+) value of member 1 (+) …, always in rank order, so that every member and every
/// algorithm gets the same bits. `values(rank)` is where a member's elements are.
template <class Op, class T, class Values>
DIST_ALWAYS_INLINE void reduce_block(Op op, std::size_t members, std::span<T> result, Values&& values) {
  T* DIST_RESTRICT sums = result.data();
  const T* first = values(std::size_t{0});
  if (members == 1) {
    std::copy_n(first, result.size(), sums);
  } else {
    const T* second = values(std::size_t{1});
    for (std::size_t i = 0; i < result.size(); ++i) sums[i] = op(first[i], second[i]);
  }
  for (std::size_t rank = 2; rank < members; ++rank) {
    const T* next = values(rank);
    for (std::size_t i = 0; i < result.size(); ++i) sums[i] = op(sums[i], next[i]);
  }
  for (std::size_t i = 0; i < result.size(); ++i) sums[i] = Op::finish(sums[i], members);
}

/// combined[i] = combined[i] (+) values[i]. Not inlined: in a loop over the members it would be fused
/// with the next member's, and then GCC does not vectorise it.
template <class Op, class Wide, class T>
[[gnu::noinline]] void combine(Op op, std::span<Wide> combined, const T* values) {
  for (std::size_t i = 0; i < combined.size(); ++i) combined[i] = op(combined[i], static_cast<Wide>(values[i]));
}

/// The same for elements that are combined in a wider type, which round once: one pass over all members for each part
/// of the block whose combined values stay in the first-level cache.
template <class Op, class T, class Values>
  requires(!std::same_as<Accumulator<T>, T>)
void reduce_block(Op op, std::size_t members, std::span<T> result, Values&& values) {
  using Wide = Accumulator<T>;
  Wide combined[block_elements<Wide>];
  for (std::size_t first = 0; first < result.size(); first += block_elements<Wide>) {
    const std::span<Wide> part{combined, std::min(block_elements<Wide>, result.size() - first)};
    std::copy_n(values(std::size_t{0}) + first, part.size(), part.data());
    for (std::size_t rank = 1; rank < members; ++rank) combine(op, part, values(rank) + first);
    for (std::size_t i = 0; i < part.size(); ++i) result[first + i] = static_cast<T>(Op::finish(part[i], members));
  }
}

/// How many members of `comm` follow each other in one group: all, unless they are the replicas of several processes.
template <SharesMemory C>
[[nodiscard]] DIST_ALWAYS_INLINE std::size_t members_per_group(const C& comm) noexcept {
  if constexpr (has_levels<C>)
    if (comm.local().size() > 1) return comm.local().size();
  return comm.size();
}

/// result[i] = the reduction of the groups' reductions, of `group` members each, at most a block: the order in which
/// replicas are combined that meet process by process.
template <class Op, class T, class Values>
void reduce_groups(Op op, std::size_t group, std::size_t groups, std::span<T> result, Values&& values) {
  using Wide = Accumulator<T>;
  Wide of_group[block_elements<T>];
  Wide all_values[block_elements<T>];
  const std::size_t count = result.size();
  for (std::size_t number = 0; number < groups; ++number) {
    const std::span<Wide> sums{number == 0 ? all_values : of_group, count};
    const auto member = [&](std::size_t rank) { return values(number * group + rank); };
    if constexpr (std::same_as<Wide, T>) {
      reduce_block(Unfinished<Op>{}, group, sums, member);
    } else {
      std::copy_n(member(0), count, sums.data());
      for (std::size_t rank = 1; rank < group; ++rank) combine(op, sums, member(rank));
    }
    if (number != 0)
      for (std::size_t i = 0; i < count; ++i) all_values[i] = op(all_values[i], of_group[i]);
  }
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<T>(Op::finish(all_values[i], group * groups));
}

/// result[i] = the reduction of the members' elements at `values(rank)`, at most a block of them.
template <class Op, SharesMemory C, class T, class Values>
DIST_ALWAYS_INLINE void reduce_members(Op op, const C& comm, std::span<T> result, Values&& values) {
  if constexpr (has_levels<C>)
    if (const std::size_t group = members_per_group(comm); group != comm.size())
      return reduce_groups(op, group, comm.size() / group, result, values);
  reduce_block(op, comm.size(), result, values);
}

/// Reduces the operands of all members over `range`, block by block, and hands each finished block to
/// `consume(first_index, sums)`, which is compiled for the widest vectors with it.
template <class T, class Op, SharesMemory C, class Consume>
void reduce_range(Op op, const C& comm, IndexRange range, Consume&& consume) {
  const bool ahead = !exceeds_caches<T>(range.size() * comm.size());
  with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
    alignas(cache_line) T sums[block_elements<T>];
    for (std::size_t first = range.begin; first < range.end; first += block_elements<T>) {
      const std::span<T> block{sums, std::min(block_elements<T>, range.end - first)};
      if (const std::size_t next = first + block_elements<T>; ahead && next < range.end)
        for (std::size_t rank = 0; rank < comm.size(); ++rank) {
          const T* const operand = comm.template peer<T>(rank);
          prefetch(operand + next, operand + std::min(next + block_elements<T>, range.end));
        }
      reduce_members(op, comm, block, [&](std::size_t rank) { return comm.template peer<T>(rank) + first; });
      consume(first, std::span<const T>{block});
    }
  });
}

/// Replaces the operands of so many members, in groups of `group`, by their reduction over `range`, in one pass without
/// memory between.
template <class T, std::size_t group, class Op, SharesMemory C, std::size_t... Member>
void reduce_in_place_of(Op op, const C& comm, IndexRange range, std::index_sequence<Member...>) {
  const std::array<T*, sizeof...(Member)> operands{comm.template peer_to_write<T>(Member)...};
  with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const T values[] = {operands[Member][i]...};
      T combined{};
      for (std::size_t first = 0; first < sizeof...(Member); first += group) {
        T of_group = values[first];
        for (std::size_t member = first + 1; member < first + group; ++member) of_group = op(of_group, values[member]);
        combined = first == 0 ? of_group : op(combined, of_group);
      }
      combined = Op::finish(combined, sizeof...(Member));
      ((operands[Member][i] = combined), ...);
    }
  });
}

/// Replaces the operands of all members, which they lend to be read and written, by their reduction over `range`.
template <class T, class Op, SharesMemory C>
void reduce_in_place(Op op, const C& comm, IndexRange range) {
  if constexpr (std::same_as<Accumulator<T>, T>) {
    const std::size_t group = members_per_group(comm);
    if (group != comm.size()) {
      if (group == 2 && comm.size() == 4)
        return reduce_in_place_of<T, 2>(op, comm, range, std::make_index_sequence<4>{});
    } else {
      if (group == 2) return reduce_in_place_of<T, 2>(op, comm, range, std::make_index_sequence<2>{});
      if (group == 3) return reduce_in_place_of<T, 3>(op, comm, range, std::make_index_sequence<3>{});
      if (group == 4) return reduce_in_place_of<T, 4>(op, comm, range, std::make_index_sequence<4>{});
    }
  }
  reduce_range<T>(op, comm, range, [&](std::size_t first, std::span<const T> reduced) {
    for (std::size_t rank = 0; rank < comm.size(); ++rank)
      std::copy_n(reduced.data(), reduced.size(), comm.template peer_to_write<T>(rank) + first);
  });
}

}  // namespace dist::detail
