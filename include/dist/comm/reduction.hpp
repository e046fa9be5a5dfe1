/// Type-erased reductions, so that code on bytes is compiled once for all element types.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/comm/collective_call.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/hash.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/streaming.hpp>
#include <dist/core/vectors.hpp>

namespace dist {

/// An operation (ReduceOp) on one element type, `reduction_of<T, Op>`: its names, and its kernels on bytes. Kernels
/// finish the result for `finished_for` members; 0: not, because values of other members are missing.
struct Reduction {
  /// The values of several members, in consecutive groups of `group` members. Each group is combined in order, then the
  /// groups are.
  struct Operands {
    const std::byte* const* values;  ///< per member: its values
    std::size_t members;             ///< number of members
    std::size_t group;               ///< members per group
  };
  /// Writable values of several members, in consecutive groups of `group` members.
  struct LentOperands {
    std::byte* const* values;  ///< per member: its values, which the kernel replaces
    std::size_t members;       ///< number of members
    std::size_t group;         ///< members per group
  };

  std::string_view name;     ///< of the operation, for messages
  std::string_view dtype;    ///< `dtype_name` of the elements
  std::uint64_t names;       ///< hash of both names in a call's fingerprint
  std::uint32_t size;        ///< bytes per element
  std::uint32_t wide_size;   ///< bytes per element of the Accumulator
  bool finishes;             ///< true if `finish` changes combined values
  const Reduction* partial;  ///< the reduction of partial results: in the Accumulator, not finished

  /// result[i - range.begin] = the reduction of element i of all operands. The result may be the same range of an
  /// operand.
  void (*reduce)(const Operands& operands, IndexRange range, std::byte* result, std::size_t finished_for);
  /// Replaces element i of each operand by their reduction, for i in `range`, finished for all of them or not at all.
  void (*reduce_in_place)(const LentOperands& operands, IndexRange range, std::size_t finished_for);
  /// wide[i] = values[i]
  void (*widen)(std::byte* wide, const std::byte* values, std::size_t count);
  /// wide[i] = wide[i] (+) values[i]
  void (*combine)(std::byte* wide, const std::byte* values, std::size_t count);
  /// result[i] = wide[i], or wide[i] (+) values[i] unless `values` is null, finished and rounded.
  void (*finish)(std::byte* result, const std::byte* wide, const std::byte* values, std::size_t count,
                 std::size_t finished_for);

  /// True if the Accumulator is wider than the element type.
  [[nodiscard]] bool widens() const noexcept { return size != wide_size; }
  /// Returns the argument of kernels for values of `members` members.
  [[nodiscard]] std::size_t finished_for(std::size_t members) const noexcept { return finishes ? members : 0; }
  /// Returns the call of a collective. Inlined, so that the hash of `operation`, a literal, is a constant.
  [[nodiscard]] DIST_ALWAYS_INLINE CollectiveCall call(std::string_view operation,
                                                       std::size_t elements) const noexcept {
    return {.operation = operation,
            .reduction = name,
            .elements = elements,
            .dtype = dtype,
            .names = {detail::hash_of(operation) * 3 + names}};
  }
};

namespace detail {

/// Elements per block: small enough that sums stay in the first-level cache between passes, and that the processor
/// prefetches the next block.
template <class T>
inline constexpr std::size_t block_elements = 2048 / sizeof(T);
inline constexpr std::size_t block_bytes = block_elements<std::byte>;

/// The kernels of a Reduction.
template <class T, class Op>
struct ReductionKernels {
  using Wide = Accumulator<T>;
  static constexpr bool widens = !std::same_as<Wide, T>;

  static void reduce(const Reduction::Operands& operands, IndexRange range, std::byte* result,
                     std::size_t finished_for) {
    if (range.size() * sizeof(T) <= few_bytes) return reduce_few(operands, range, result, finished_for);
    if constexpr (!widens)
      if (operands.group == 2 && operands.members == 2) return reduce_two(operands, range, result, finished_for);
    reduce_blocks(operands, range, result, finished_for);
  }

  static void reduce_in_place(const Reduction::LentOperands& operands, IndexRange range, std::size_t finished_for) {
    if constexpr (!widens) {
      const bool is_single_group = operands.group == operands.members;
      if (is_single_group && operands.members == 2) return in_one_pass<2, 2>(operands, range, finished_for);
      if (is_single_group && operands.members == 3) return in_one_pass<3, 3>(operands, range, finished_for);
      if (is_single_group && operands.members == 4) return in_one_pass<4, 4>(operands, range, finished_for);
      if (operands.group == 2 && operands.members == 4) return in_one_pass<4, 2>(operands, range, finished_for);
    }
    constexpr std::size_t most = 4 * block_elements<T>;
    for (std::size_t first = range.begin; first < range.end; first += most) {
      const IndexRange block{first, std::min(first + most, range.end)};
      T* const result = elements(operands.values[0]) + first;
      reduce_blocks({operands.values, operands.members, operands.group}, block, operands.values[0] + first * sizeof(T),
                    finished_for);
      for (std::size_t member = 1; member < operands.members; ++member)
        std::copy_n(result, block.size(), elements(operands.values[member]) + first);
    }
  }

  static void widen(std::byte* wide, const std::byte* values, std::size_t count) {
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      for (std::size_t i = 0; i < count; ++i) wides(wide)[i] = static_cast<Wide>(elements(values)[i]);
    });
  }

  /// Not inlined: GCC would fuse loops over members, and then not vectorise them well.
  [[gnu::noinline]] static void combine(std::byte* wide, const std::byte* values, std::size_t count) {
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      Wide* DIST_RESTRICT combined = wides(wide);
      const T* DIST_RESTRICT others = elements(values);
      for (std::size_t i = 0; i < count; ++i) combined[i] = Op{}(combined[i], static_cast<Wide>(others[i]));
    });
  }

  static void finish(std::byte* result, const std::byte* wide, const std::byte* values, std::size_t count,
                     std::size_t finished_for) {
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      if (values == nullptr) return finish_block(elements(result), wides(wide), count, finished_for);
      finishing(finished_for, [&](auto finished) DIST_INLINE_LAMBDA {
        T* DIST_RESTRICT to = elements(result);
        const Wide* DIST_RESTRICT before = wides(wide);
        const T* DIST_RESTRICT mine = elements(values);
        for (std::size_t i = 0; i < count; ++i) to[i] = finished(Op{}(before[i], static_cast<Wide>(mine[i])));
      });
    });
  }

 private:
  static T* elements(std::byte* bytes) noexcept { return reinterpret_cast<T*>(bytes); }
  static const T* elements(const std::byte* bytes) noexcept { return reinterpret_cast<const T*>(bytes); }
  static Wide* wides(std::byte* bytes) noexcept { return reinterpret_cast<Wide*>(bytes); }
  static const Wide* wides(const std::byte* bytes) noexcept { return reinterpret_cast<const Wide*>(bytes); }

  /// Calls `loop(finished)`, where `finished(combined)` converts a combined value to an element.
  template <class Loop>
  DIST_ALWAYS_INLINE static void finishing([[maybe_unused]] std::size_t finished_for, Loop&& loop) {
    if constexpr (!std::derived_from<Op, IdentityFinish>)
      if (finished_for != 0)
        return loop([=](Wide combined)
                        DIST_INLINE_LAMBDA { return static_cast<T>(Op::finish(combined, finished_for)); });
    loop([](Wide combined) DIST_INLINE_LAMBDA { return static_cast<T>(combined); });
  }
  DIST_ALWAYS_INLINE static void finish_block(T* result, const Wide* combined, std::size_t count,
                                              std::size_t finished_for) {
    finishing(finished_for, [&](auto finished) DIST_INLINE_LAMBDA {
      for (std::size_t i = 0; i < count; ++i) result[i] = finished(combined[i]);
    });
  }

  static constexpr std::size_t few_bytes = 32;
  /// For few elements: scalar code without blocks, which has less overhead.
  DIST_ALWAYS_INLINE static void reduce_few(const Reduction::Operands& operands, IndexRange range, std::byte* result,
                                            std::size_t finished_for) {
    finishing(finished_for, [&](auto finished) DIST_INLINE_LAMBDA {
      for (std::size_t i = range.begin; i < range.end; ++i)
        elements(result)[i - range.begin] =
            finished(combined_groups(operands.members, operands.group, [&](std::size_t member) DIST_INLINE_LAMBDA {
              asm("");  // prevents GCC from gathering the values of several members into vectors
              return static_cast<Wide>(elements(operands.values[member])[i]);
            }));
    });
  }

  [[gnu::noinline]] static void reduce_two(const Reduction::Operands& operands, IndexRange range, std::byte* result,
                                           std::size_t finished_for) {
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      finishing(finished_for, [&](auto finished) DIST_INLINE_LAMBDA {
        const T* const one = elements(operands.values[0]);
        const T* const other = elements(operands.values[1]);
        T* const to = elements(result);
        DIST_INDEPENDENT_LOOP
        for (std::size_t i = range.begin; i < range.end; ++i) to[i - range.begin] = finished(Op{}(one[i], other[i]));
      });
    });
  }
  [[gnu::noinline]] static void reduce_blocks(const Reduction::Operands& operands, IndexRange range, std::byte* result,
                                              std::size_t finished_for) {
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      alignas(cache_line) Wide all[block_elements<Wide>];
      alignas(cache_line) Wide of_group[block_elements<Wide>];
      const bool ahead = !exceeds_caches<T>(range.size() * operands.members);
      for (std::size_t first = range.begin; first < range.end; first += block_elements<Wide>) {
        const std::size_t count = std::min(block_elements<Wide>, range.end - first);
        if (const std::size_t next = first + block_elements<Wide>; ahead && next < range.end)
          for (std::size_t member = 0; member < operands.members; ++member) {
            const T* const operand = elements(operands.values[member]);
            prefetch(operand + next, operand + std::min(next + block_elements<Wide>, range.end));
          }
        combine_group(operands, 0, first, all, count);
        for (std::size_t begin = operands.group; begin < operands.members; begin += operands.group) {
          combine_group(operands, begin, first, of_group, count);
          for (std::size_t i = 0; i < count; ++i) all[i] = Op{}(all[i], of_group[i]);
        }
        finish_block(elements(result) + (first - range.begin), all, count, finished_for);
      }
    });
  }
  DIST_ALWAYS_INLINE static void combine_group(const Reduction::Operands& operands, std::size_t begin,
                                               std::size_t first, Wide* DIST_RESTRICT sums, std::size_t count) {
    const auto values = [&](std::size_t member) { return elements(operands.values[begin + member]) + first; };
    const T* const one = values(0);
    if (widens || operands.group == 1) {
      for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<Wide>(one[i]);
    } else {
      const T* const other = values(1);
      for (std::size_t i = 0; i < count; ++i) sums[i] = Op{}(static_cast<Wide>(one[i]), static_cast<Wide>(other[i]));
    }
    for (std::size_t member = widens ? 1 : 2; member < operands.group; ++member)
      combine(reinterpret_cast<std::byte*>(sums), reinterpret_cast<const std::byte*>(values(member)), count);
  }

  /// Combines one value of each member, in groups of `group`.
  DIST_ALWAYS_INLINE static Wide combined_groups(std::size_t members, std::size_t group, const auto& value_of) {
    Wide all{};
    for (std::size_t first = 0; first < members; first += group) {
      Wide of_group = value_of(first);
      for (std::size_t member = first + 1; member < first + group; ++member)
        of_group = Op{}(of_group, value_of(member));
      all = first == 0 ? of_group : Op{}(all, of_group);
    }
    return all;
  }
  /// In place, in one pass without a buffer. Not inlined: GCC would load each value several times.
  template <std::size_t members, std::size_t group>
  [[gnu::noinline]] static void in_one_pass(const Reduction::LentOperands& operands, IndexRange range,
                                            std::size_t finished_for) {
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      [&]<std::size_t... Member>(std::index_sequence<Member...>) DIST_INLINE_LAMBDA {
        T* const lent[] = {elements(operands.values[Member])...};
        finishing(finished_for == 0 ? 0 : members, [&](auto finished) DIST_INLINE_LAMBDA {  // division by a constant
          DIST_INDEPENDENT_LOOP
          for (std::size_t i = range.begin; i < range.end; ++i) {
            const T values[] = {lent[Member][i]...};
            const T combined = finished(
                combined_groups(members, group, [&](std::size_t member) DIST_INLINE_LAMBDA { return values[member]; }));
            ((lent[Member][i] = combined), ...);
          }
        });
      }
      (std::make_index_sequence<members>{});
    });
  }
};

template <class Op>
using PartialOf = std::conditional_t<std::derived_from<Op, IdentityFinish>, Op, Unfinished<Op>>;

}  // namespace detail

/// The reduction of elements of type `T` by `Op`.
template <class T, class Op>
inline constexpr Reduction reduction_of = [] {
  constexpr bool finishes = !std::derived_from<Op, detail::IdentityFinish>;
  using Kernels = detail::ReductionKernels<T, typename detail::FinishedOf<Op>::Type>;
  return Reduction{.name = Op::name,
                   .dtype = dtype_name<T>,
                   .names = detail::HashOfNames::of({}, Op::name, dtype_name<T>).value,
                   .size = sizeof(T),
                   .wide_size = sizeof(Accumulator<T>),
                   .finishes = finishes,
                   .partial = &reduction_of<Accumulator<T>, detail::PartialOf<Op>>,
                   .reduce = Kernels::reduce,
                   .reduce_in_place = Kernels::reduce_in_place,
                   .widen = Kernels::widen,
                   .combine = Kernels::combine,
                   .finish = Kernels::finish};
}();

/// Base of collectives that reduce bytes: their type of records, and the record of an element type and an operation.
struct ReducesByRecords {
  using Record = Reduction;
  template <class T, class Op>
  [[nodiscard]] static constexpr const Record& record() noexcept {
    return reduction_of<T, Op>;
  }
};

}  // namespace dist

#ifdef DIST_COMPILED
/// Applies the macro ENTRY(KIND, element type, operation) to all precompiled reductions. KIND is `extern` for
/// declarations, and empty for definitions in the library.
#define DIST_REDUCTIONS_OF(ENTRY, KIND, T) ENTRY(KIND, T, Sum) ENTRY(KIND, T, Min) ENTRY(KIND, T, Max)
#define DIST_REDUCTIONS(ENTRY, KIND)              \
  DIST_REDUCTIONS_OF(ENTRY, KIND, float)          \
  DIST_REDUCTIONS_OF(ENTRY, KIND, double)         \
  DIST_REDUCTIONS_OF(ENTRY, KIND, dist::BFloat16) \
  DIST_REDUCTIONS_OF(ENTRY, KIND, dist::Float16)  \
  DIST_REDUCTIONS_OF(ENTRY, KIND, std::int32_t)   \
  DIST_REDUCTIONS_OF(ENTRY, KIND, std::int64_t)   \
  DIST_REDUCTIONS_OF(ENTRY, KIND, std::uint8_t)   \
  ENTRY(KIND, float, Mean)                        \
  ENTRY(KIND, double, Mean)                       \
  ENTRY(KIND, dist::BFloat16, Mean)               \
  ENTRY(KIND, dist::Float16, Mean)                \
  ENTRY(KIND, std::uint64_t, Sum)

#define DIST_REDUCTION_KERNELS(KIND, T, Op) KIND template struct dist::detail::ReductionKernels<T, dist::Op>;
DIST_REDUCTIONS(DIST_REDUCTION_KERNELS, extern)
#endif
