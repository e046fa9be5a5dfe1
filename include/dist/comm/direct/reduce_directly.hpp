#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include <dist/comm/element_update.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::detail {

/// The update of an all-reduce: takes the reduced value.
struct TakeReduced {
  template <class T>
  DIST_HD T operator()(std::size_t, T, T reduced) const {
    return reduced;
  }
};

/// True if the kernel for `Replicas` replicas is exact, see ReduceDirectly. Without an update, an exact kernel for
/// eight replicas would hold all eight packs at once, in more than 40 registers on sm_100.
template <class Update, std::size_t Replicas>
inline constexpr bool reduces_exactly = Replicas < 8 || !std::same_as<Update, TakeReduced>;

/// Reduces a replica's share: combines all operands in rank order, updates, and writes every replica's copy. One call
/// processes one pack of elements, in a kernel or a loop. `Most` bounds the unrolled loops over replicas: indices known
/// only in the kernel would move these arrays to its local memory. `Exact`: there are exactly `Most` values and
/// mirrors, so the kernel needs no registers to skip some.
template <class T, class Op, class Update, std::size_t Most, bool Exact = false>
struct ReduceDirectly {
  static constexpr std::size_t lanes = pack_elements<T>;

  const T* values[Most];
  T* mirrors[Most];
  const T* mine;
  std::size_t value_count;
  std::size_t mirror_count;
  std::size_t end;  ///< end of this replica's share
  bool aligned;     ///< true if all operands are aligned to 16 bytes
  Update update;

  /// Combines `values_of` and writes `mirrors_of`, of which `mirrors_of[own]` is this replica's. A share begins at a
  /// multiple of `lanes`.
  ReduceDirectly(std::span<const T* const> values_of, std::span<T* const> mirrors_of, std::size_t own,
                 std::size_t end_of_share, const Update& change)
      : mine(mirrors_of[own]),
        value_count(values_of.size()),
        mirror_count(mirrors_of.size()),
        end(end_of_share),
        aligned(true),
        update(change) {
    for (std::size_t r = 0; r < Most; ++r) {
      values[r] = values_of[r < value_count ? r : 0];
      mirrors[r] = mirrors_of[r < mirror_count ? r : 0];
      aligned = aligned && is_aligned_for_packs(values[r]) && is_aligned_for_packs(mirrors[r]);
    }
  }

  DIST_HD void operator()(std::size_t pack) const {
    const std::size_t first = pack * lanes;
    if (aligned && first + lanes <= end) {
      const Pack<T> changed = updated_pack(update, first, Pack<T>::load(mine + first), reduced_pack(first));
      for (std::size_t r = 0; r < Most; ++r)
        if (has_mirror(r)) changed.store(mirrors[r] + first);
    } else {
      for (std::size_t i = first; i < end && i < first + lanes; ++i) {
        const T changed = update(i, mine[i], reduced(i));
        for (std::size_t r = 0; r < Most; ++r)
          if (has_mirror(r)) mirrors[r][i] = changed;
      }
    }
  }

 private:
  using Wide = Accumulator<T>;

  [[nodiscard]] DIST_HD bool has_value(std::size_t r) const { return Exact || r < value_count; }
  [[nodiscard]] DIST_HD bool has_mirror(std::size_t r) const { return Exact || r < mirror_count; }

  [[nodiscard]] DIST_HD T reduced(std::size_t i) const {
    auto combined = static_cast<Wide>(values[0][i]);
    for (std::size_t r = 1; r < Most; ++r)
      if (has_value(r)) combined = Op{}(combined, static_cast<Wide>(values[r][i]));
    return static_cast<T>(Op::finish(combined, value_count));
  }
  [[nodiscard]] DIST_HD Pack<T> reduced_pack(std::size_t first) const {
    Pack<T> pack = Pack<T>::load(values[0] + first);
    Wide combined[lanes];
    for (std::size_t lane = 0; lane < lanes; ++lane) combined[lane] = static_cast<Wide>(pack.element[lane]);
    for (std::size_t r = 1; r < Most; ++r) {
      if (!has_value(r)) continue;
      const Pack<T> next = Pack<T>::load(values[r] + first);
      for (std::size_t lane = 0; lane < lanes; ++lane)
        combined[lane] = Op{}(combined[lane], static_cast<Wide>(next.element[lane]));
    }
    for (std::size_t lane = 0; lane < lanes; ++lane)
      pack.element[lane] = static_cast<T>(Op::finish(combined[lane], value_count));
    return pack;
  }
};

/// Maximum number of replicas: their operands are arguments of one kernel.
inline constexpr std::size_t most_direct_replicas = 8;

/// Enqueues the reduction of a replica's share of `values`, which updates the contents of `mirrors[own]` and writes all
/// `mirrors`, one for each replica or one for all. Uses an exact kernel if there is one.
template <class Op, class T, class Queue, class Update>
void put_direct_reduction(const Queue& queue, IndexRange share, std::span<const T* const> values,
                          std::span<T* const> mirrors, std::size_t own, const Update& update) {
  const auto put = [&]<std::size_t Most, bool Exact>() {
    using Body = ReduceDirectly<T, Op, Update, Most, Exact>;
    queue.for_each(packs_of<T>(share), Body{values, mirrors, own, share.end, update});
  };
  constexpr std::size_t most = most_direct_replicas;
  if (values.size() != mirrors.size()) return put.template operator()<most, false>();
  switch (values.size()) {
    case 2:
      return put.template operator()<2, true>();
    case 3:
      return put.template operator()<3, true>();
    case 4:
      return put.template operator()<4, true>();
    case most:
      return put.template operator()<most, reduces_exactly<Update, most>>();
    default:
      return put.template operator()<most, false>();
  }
}

}  // namespace dist::detail
