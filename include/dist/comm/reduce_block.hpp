#pragma once

#include <cstddef>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/streaming.hpp>

namespace dist::detail {

/// result[i] = value of member 0 (+) value of member 1 (+) …, in rank order, so that every member and algorithm gets
/// the same bits. `values(rank)` returns a member's elements.
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

/// combined[i] = combined[i] (+) values[i]. Not inlined: GCC would fuse loops over members, and then not vectorise
/// them.
template <class Op, class Wide, class T>
[[gnu::noinline]] void combine(Op op, std::span<Wide> combined, const T* values) {
  for (std::size_t i = 0; i < combined.size(); ++i) combined[i] = op(combined[i], static_cast<Wide>(values[i]));
}

/// The number of consecutive members in a group: all, or the replicas of a process if there are several processes.
template <SharesMemory C>
[[nodiscard]] DIST_ALWAYS_INLINE std::size_t members_per_group(const C& comm) noexcept {
  if constexpr (has_levels<C>)
    if (comm.local().size() > 1) return comm.local().size();
  return comm.size();
}

/// The operands of all members, as kernels of a Reduction take them.
template <class Pointer>
class OperandsOfMembers {
 public:
  template <class Where>
  OperandsOfMembers(std::size_t members, std::size_t group, Where&& of) : members_(members), group_(group) {
    if (members > few) {
      many_.reset(new Pointer[members]);
      operands_ = many_.get();
    }
    for (std::size_t rank = 0; rank < members; ++rank) operands_[rank] = of(rank);
  }
  OperandsOfMembers(const OperandsOfMembers&) = delete;
  OperandsOfMembers& operator=(const OperandsOfMembers&) = delete;

  template <class Operands>
  [[nodiscard]] operator Operands() const noexcept {
    return {operands_, members_, group_};
  }
  [[nodiscard]] std::size_t size() const noexcept { return members_; }
  [[nodiscard]] Pointer operator[](std::size_t rank) const noexcept { return operands_[rank]; }

 private:
  static constexpr std::size_t few = 16;

  std::size_t members_;
  std::size_t group_;
  Pointer here_[few];
  Pointer* operands_ = here_;
  std::unique_ptr<Pointer[]> many_;
};

template <SharesMemory C>
[[nodiscard]] OperandsOfMembers<const std::byte*> operands_of(const C& comm) {
  return {comm.size(), members_per_group(comm), [&](std::size_t rank) { return comm.template peer<std::byte>(rank); }};
}

/// Replaces the writable operands of all members by their reduction over `range`.
template <SharesMemory C>
void reduce_in_place(const Reduction& reduction, const C& comm, IndexRange range) {
  const OperandsOfMembers<std::byte*> operands{comm.size(), members_per_group(comm), [&](std::size_t rank) {
                                                 return comm.template peer_to_write<std::byte>(rank);
                                               }};
  reduction.reduce_in_place(operands, range, reduction.finished_for(comm.size()));
}

/// result[i] = the reduction of element i of the local operands and the operands of the other members of `ops`, all
/// equal in number. The result may be one of the operands. A collective call.
template <class Ops>
void reduce_with_members(const Ops& ops, const typename Ops::Record& reduction,
                         const OperandsOfMembers<const std::byte*>& operands, std::size_t count, std::byte* result) {
  const std::size_t here = operands.size();
  const std::size_t finished_for = reduction.finished_for(here * ops.communicator().size());
  if (ops.communicator().size() == 1) return reduction.reduce(operands, {0, count}, result, finished_for);
  AlignedBuffer<std::byte> wide(reduction.widens() ? count * reduction.wide_size : 0);
  const std::span<std::byte> sums{reduction.widens() ? wide.data() : result, count * reduction.wide_size};
  if (reduction.widens()) {
    reduction.widen(sums.data(), operands[0], count);
    for (std::size_t operand = 1; operand < here; ++operand) reduction.combine(sums.data(), operands[operand], count);
  } else {
    reduction.reduce(operands, {0, count}, result, 0);
  }
  ops.all_reduce_bytes(static_cast<const typename Ops::Record&>(*reduction.partial), sums);
  if (reduction.widens() || reduction.finishes) reduction.finish(result, sums.data(), nullptr, count, finished_for);
}

/// Callback for reduced values, starting at element `first`: `use(first, reduced)`.
using UseReduced = FunctionRef<void(std::size_t, std::span<const std::byte>)>;

/// Reduces the operands of all members over `range` and calls `use` for each finished block.
template <SharesMemory C>
void reduce_range(const Reduction& reduction, const C& comm, IndexRange range, UseReduced use) {
  const std::size_t size = reduction.size;
  const OperandsOfMembers<const std::byte*> operands = operands_of(comm);
  const std::size_t most = block_bytes / size;
  const bool ahead = !exceeds_caches<std::byte>(range.size() * size * comm.size());
  alignas(cache_line) std::byte block[block_bytes];
  for (std::size_t first = range.begin; first < range.end; first += most) {
    const std::size_t end = std::min(first + most, range.end);
    if (ahead && end < range.end)
      for (std::size_t rank = 0; rank < comm.size(); ++rank)
        prefetch(operands[rank] + end * size, operands[rank] + std::min(end + most, range.end) * size);
    reduction.reduce(operands, {first, end}, block, reduction.finished_for(comm.size()));
    use(first, std::span<const std::byte>{block, (end - first) * size});
  }
}

/// Calls `use` for blocks of `range`: `wide`, combined with `values` unless null, and finished for `members` members.
/// Both pointers refer to the first element of the range.
inline void use_finished(const Reduction& reduction, IndexRange range, const std::byte* wide, const std::byte* values,
                         std::size_t members, UseReduced use) {
  const std::size_t most = block_bytes / reduction.size;
  alignas(cache_line) std::byte block[block_bytes];
  for (std::size_t at = 0; at < range.size(); at += most) {
    const std::size_t count = std::min(most, range.size() - at);
    reduction.finish(block, wide + at * reduction.wide_size, values == nullptr ? nullptr : values + at * reduction.size,
                     count, reduction.finished_for(members));
    use(range.begin + at, std::span<const std::byte>{block, count * reduction.size});
  }
}

template <class T>
[[nodiscard]] std::span<const T> elements_in(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// Returns a function on bytes that calls `use(first, reduced)` with elements of type `T`. `use` must outlive it.
template <class T>
[[nodiscard]] auto with_elements(auto& use) noexcept {
  return [&use](std::size_t first, std::span<const std::byte> reduced) { use(first, elements_in<T>(reduced)); };
}

/// Typed functions for collectives `Self`, implemented by its functions on bytes:
/// - `all_reduce_bytes(record, values)`;
/// - `reduce_scatter_bytes(record, values, use)`;
/// - `reduce_and_apply_bytes(record, gradient, mirror, update)`, where `update(first, reduced)` updates elements of
///   `mirror`;
/// - `update_shards_bytes(call, size, mirror, update)` for elements of `size` bytes, where `update(block)` updates
///   `mirror`.
template <class Self>
class OnBytes : public ReducesByRecords {
 public:
  template <class T, ReduceOp<T> Op>
  void all_reduce(Op, std::span<T> values) const {
    self().all_reduce_bytes(Self::template record<T, Op>(), std::as_writable_bytes(values));
  }
  template <class T, ReduceOp<T> Op, class Use>
  void reduce_scatter(Op, std::span<const T> values, Use&& use) const {
    self().reduce_scatter_bytes(Self::template record<T, Op>(), std::as_bytes(values), with_elements<T>(use));
  }
  template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
  void reduce_and_apply(Op, std::span<const T> gradient, std::span<T> mirror, const Update& update) const {
    const auto apply = [&](std::size_t first, std::span<const T> reduced) {
      update_range(update, first, mirror.subspan(first, reduced.size()), reduced);
    };
    self().reduce_and_apply_bytes(Self::template record<T, Op>(), std::as_bytes(gradient),
                                  std::as_writable_bytes(mirror), with_elements<T>(apply));
  }
  template <class T, ElementUpdate<T> Update>
  void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
    self().update_shards_bytes({.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>},
                               sizeof(T), std::as_writable_bytes(mirror), [&](IndexRange block) {
                                 update_range(update, block.begin, mirror.subspan(block.begin, block.size()),
                                              gradients.subspan(block.begin, block.size()));
                               });
  }

 private:
  [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

}  // namespace dist::detail
