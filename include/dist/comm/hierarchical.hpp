/// Collectives of groups of groups: replicas in processes, or processes on nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <dist/comm/communication_options.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/group_layout.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/memory_collectives.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/hash.hpp>
#include <dist/core/index_range.hpp>

namespace dist {

/// A member of a group of groups with the collectives `Ops`, which must outlive it.
template <class Ops>
class HierarchicalCommunicator {
 public:
  /// The member whose collectives are `ops`.
  explicit HierarchicalCommunicator(const Ops& ops) : ops_(&ops) {}

  [[nodiscard]] std::size_t rank() const noexcept { return ops_->layout().rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return ops_->layout().size(); }
  void barrier() const { ops_->barrier(); }
  void begin_attempt() const noexcept { ops_->begin_attempt(); }
  void cancel(const FailureNotice& notice) const noexcept { ops_->cancel(notice); }
  void cancel(const std::exception_ptr& why) const noexcept { ops_->cancel(why); }
  /// Records the context of calls on all levels.
  void begin_run(std::uint64_t kind) const {
    ops_->for_each_level([&](const auto& comm) { comm.begin_run(kind); });
  }
  void begin_alone() const {
    ops_->for_each_level([](const auto& comm) { comm.begin_alone(); });
  }
  void end_run() const {
    ops_->for_each_level([](const auto& comm) { comm.end_run(); });
  }
  void begin_call() const {
    ops_->for_each_level([](const auto& comm) { comm.begin_call(); });
  }
  void set_structure(std::uint64_t structure) const {
    ops_->for_each_level([&](const auto& comm) { comm.set_structure(structure); });
  }
  [[nodiscard]] auto local() const noexcept { return ops_->lower().communicator().local(); }

 private:
  const Ops* ops_;
};

template <class Lower, class Upper>
class Hierarchical;

namespace detail {
template <class Ops>
struct NeighborExchange;
}  // namespace detail

/// Joins the collectives within each group, `Lower`, whose members share a window, and the collectives between the
/// first members of all groups (the leaders), `Upper`, with known shards (DividesShards). The members of a group each
/// reduce a part of its values into memory of the leader, leaders reduce across groups, and members copy the result. If
/// one level has only one member, the other one does everything.
///
/// Per element of the result, a group of R members makes 3R - 1 memory accesses; an all-reduce and a broadcast in the
/// group would make 4R - 2.
///
/// Each group is summed first, so the last bits may differ from sums in rank order; they are the same on every member
/// and in every run.
template <class Lower, class Upper>
class Hierarchical : public detail::OnBytes<Hierarchical<Lower, Upper>>,
                     public detail::GathersBytes<Hierarchical<Lower, Upper>> {
  static_assert(SharesWindow<CommunicatorOf<Lower>> && DividesShards<Upper>);

 public:
  using Record = typename Upper::Record;
  template <class T, class Op>
  [[nodiscard]] static constexpr const Record& record() noexcept {
    return Upper::template record<T, Op>();
  }

  /// `upper` is set on leaders if there are several groups. `layout` must outlive the collectives. `timeout` limits the
  /// wait for other members; 0: without limit. Waits for events on another level are a little longer, so that members
  /// with more precise information report first.
  Hierarchical(const GroupLayout& layout, const Lower& lower, const std::optional<Upper>& upper,
               std::chrono::nanoseconds timeout);

  [[nodiscard]] HierarchicalCommunicator<Hierarchical> communicator() const noexcept {
    return HierarchicalCommunicator<Hierarchical>{*this};
  }
  /// The division of all members into groups.
  [[nodiscard]] const GroupLayout& layout() const noexcept { return *layout_; }
  /// The collectives within this member's group.
  [[nodiscard]] const Lower& lower() const noexcept { return lower_; }
  /// On leaders only.
  [[nodiscard]] const std::optional<Upper>& upper() const noexcept { return upper_; }

  /// Returns the same collectives with another timeout (spec H13).
  [[nodiscard]] Hierarchical with_timeout(std::chrono::nanoseconds timeout) const {
    return {*layout_, lower_, upper_, timeout};
  }

  /// Calls `use(communicator)` for each level of this member.
  template <class Use>
  void for_each_level(Use&& use) const {
    use(lower_.communicator());
    if (upper_) use(upper_->communicator());
  }

  /// Starts a unit of work on all levels. Levels that know of a failure get no second report.
  void begin_attempt() const noexcept {
    lower_.begin_attempt();
    if (upper_) upper_->begin_attempt();
  }
  void cancel(const FailureNotice& notice) const noexcept {
    lower_.cancel(notice);
    if (upper_) upper_->cancel(notice);
  }
  /// Threads of one process are on the lowest level only.
  void cancel(const std::exception_ptr& why) const noexcept { lower_.cancel(why); }
  [[nodiscard]] bool is_broken() const noexcept { return lower_.is_broken() || (upper_ && upper_->is_broken()); }

  /// Checks that all members make this call; otherwise all throw CollectiveMismatch, here or in their next collective.
  void agree(const CollectiveCall& call) const;

  /// Like `agree`, but returns only when all members are known to make this call.
  void meet(const CollectiveCall& call) const;

  /// Waits until every member has called it. A collective call.
  void barrier() const;

  void all_reduce_bytes(const Record& reduction, std::span<std::byte> values) const;

  void broadcast_bytes(const CollectiveCall& call, std::span<std::byte> values) const;
  void all_gather_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                        std::span<const std::size_t> counts, std::size_t size, std::span<std::byte> all) const;
  void gather_values_bytes(const CollectiveCall& call, std::span<const std::byte> mine, std::span<std::byte> all) const;

  /// Shards are per group, and divided among its members.
  void reduce_and_apply_bytes(const Record& reduction, std::span<const std::byte> gradient, std::span<std::byte> mirror,
                              detail::UseReduced update) const;
  void reduce_scatter_bytes(const Record& reduction, std::span<const std::byte> values, detail::UseReduced use) const;
  void update_shards_bytes(const CollectiveCall& call, std::size_t size, std::span<std::byte> mirror,
                           detail::FunctionRef<void(IndexRange)> update) const;

 private:
  template <class Ops>
  friend struct detail::NeighborExchange;

  [[nodiscard]] bool is_single_group() const noexcept { return layout_->groups() == 1; }
  /// True if every group has one member. All members get the same answer, even if groups differ in size.
  [[nodiscard]] bool is_flat() const noexcept { return layout_->groups() == layout_->size(); }
  [[nodiscard]] bool leads() const noexcept { return lower_.communicator().rank() == 0; }

  void announce(const CollectiveCall& call) const;

  /// Calls `body`, which communicates on both levels. If it throws, the other level gets a report.
  template <class Body>
  void reporting_failures(Body&& body) const {
    begin_attempt();
    try {
      body();
    } catch (const std::exception& error) {
      cancel(FailureNotice{error});
      cancel(std::current_exception());
      throw;
    } catch (...) {
      cancel(std::current_exception());
      throw;
    }
  }

  /// Calls `use` with the collectives of a level that has all members. Without such a level, calls `on_levels`, which
  /// communicates on both.
  template <class Use, class OnLevels>
  void by_shape(Use&& use, OnLevels&& on_levels) const {
    if (!is_single_group()) return is_flat() ? use(*upper_) : reporting_failures(on_levels);
    if constexpr (detail::has_levels<CommunicatorOf<Lower>>)
      reporting_failures([&] { use(lower_); });
    else
      use(lower_);
  }

  void all_reduce_on_levels(const Record& reduction, std::span<std::byte> values) const;
  /// Combines values of all members without finishing them.
  void all_reduce_parts(const Record& partial, std::span<std::byte> values) const;
  void broadcast_on_levels(const CollectiveCall& call, std::span<std::byte> values) const;

  void gather_in_rank_order(std::span<const std::byte> mine, std::span<const std::size_t> counts,
                            std::span<std::byte> all) const;
  void all_gather_by_group(std::span<const std::byte> mine, std::span<const std::size_t> counts,
                           std::span<const std::size_t> counts_by_group, std::span<std::byte> by_group) const;

  /// Returns `values` if the group can access them, otherwise shared memory of this size.
  [[nodiscard]] std::span<std::byte> reachable(std::span<std::byte> values, int stage) const {
    const auto& comm = lower_.communicator();
    return comm.holds(values.data(), values.size()) ? values : comm.template stage<std::byte>(stage, values.size());
  }

  /// Calls `visit(share)` with this member's elements: a part of each shard of its group.
  template <class Visit>
  void for_each_share(std::size_t elements, Visit&& visit) const {
    Upper::for_each_shard(elements, layout_->group(), layout_->groups(), [&](IndexRange shard) {
      const auto& comm = lower_.communicator();
      const IndexRange within = shard_of(shard.size(), comm.rank(), comm.size(), cache_line);
      if (within.size() != 0) visit(IndexRange{shard.begin + within.begin, shard.begin + within.end});
    });
  }

  /// Calls `use(first, reduced)` with blocks of this member's shares of the reduction. Meanwhile the leader lends
  /// `result`.
  void reduce_shares(std::string_view operation, const Record& reduction, std::span<const std::byte> values,
                     std::byte* result, detail::UseReduced use) const;
  /// Copies bytes to the leader's result, from byte `first` on.
  void give_to_leader(std::size_t first, std::span<const std::byte> mine) const {
    std::byte* const theirs = patient_.communicator().template peer_to_write<std::byte>(0) + first;
    if (theirs != mine.data()) std::copy(mine.begin(), mine.end(), theirs);
  }
  /// Copies the shares of all members, of elements of `size` bytes, to all mirrors. The leader's `result` has the
  /// shares of its group.
  void gather_shares(std::string_view operation, std::string_view dtype, std::size_t size, std::span<std::byte> result,
                     std::span<std::byte> mirror) const;
  /// Copies `elements` values at `from`, shared memory of the leader, to all members of the group.
  void take_from_leader(const std::byte* from, std::span<std::byte> values, std::size_t elements,
                        std::string_view dtype) const;

  /// Factor for waits for the leader, in units of 5 s or of the timeout if that is shorter; exceeds the factor of the
  /// level above.
  static constexpr int leader_timeout_factor = 8;

  const GroupLayout* layout_;
  Lower lower_;
  Lower patient_;  // with a longer timeout, for waits while the leader is on the upper level
  std::optional<Upper> upper_;
};

namespace detail {
template <class Lower, class Upper>
inline constexpr bool reduces_bytes<Hierarchical<Lower, Upper>> = true;
}  // namespace detail

template <class Lower, class Upper>
Hierarchical<Lower, Upper>::Hierarchical(const GroupLayout& layout, const Lower& lower,
                                         const std::optional<Upper>& upper, std::chrono::nanoseconds timeout)
    : layout_(&layout),
      lower_(lower.with_timeout(timeout)),
      patient_(lower.with_timeout(detail::longer(timeout, leader_timeout_factor))) {
  if (upper) upper_.emplace(upper->with_timeout(is_flat() ? timeout : detail::longer(timeout, 1)));
  DIST_EXPECT(upper_.has_value() || is_single_group() || lower_.communicator().rank() != 0);
}

template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::agree(const CollectiveCall& call) const {
  reporting_failures([&] { announce(call); });
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::meet(const CollectiveCall& call) const {
  reporting_failures([&] {
    announce(call);
    if (!is_single_group()) patient_.communicator().barrier();
  });
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::announce(const CollectiveCall& call) const {
  lower_.communicator().publish(call, {});
  if (!is_single_group() && leads()) upper_->communicator().announce(call);
}

template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::barrier() const {
  by_shape([](const auto& level) { level.communicator().barrier(); },
           [&] {
             lower_.communicator().barrier();
             if (leads()) upper_->communicator().barrier();
             patient_.communicator().barrier();
           });
}

template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::all_reduce_bytes(const Record& reduction, std::span<std::byte> values) const {
  by_shape([&](const auto& level) { level.all_reduce_bytes(reduction, values); },
           [&] { all_reduce_on_levels(reduction, values); });
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::all_reduce_on_levels(const Record& reduction, std::span<std::byte> values) const {
  const auto& partial = static_cast<const Record&>(*reduction.partial);
  const std::size_t elements = values.size() / reduction.size;
  const std::size_t finished_for = reduction.finished_for(layout_->size());
  if (reduction.widens()) {
    AlignedBuffer<std::byte> wide(elements * reduction.wide_size);
    reduction.widen(wide.data(), values.data(), elements);
    all_reduce_parts(partial, {wide.data(), wide.size()});
    reduction.finish(values.data(), wide.data(), nullptr, elements, finished_for);
  } else {
    all_reduce_parts(partial, values);
    if (reduction.finishes) reduction.finish(values.data(), values.data(), nullptr, elements, finished_for);
  }
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::all_reduce_parts(const Record& partial, std::span<std::byte> values) const {
  const std::size_t elements = values.size() / partial.size;
  if (values.size() <= CommunicatorOf<Lower>::exchange_capacity) {
    lower_.all_reduce_bytes(partial, values);
    if (leads()) upper_->all_reduce_bytes(partial, values);
    patient_.broadcast_bytes({.operation = "broadcast", .elements = elements, .dtype = partial.dtype}, values);
  } else {
    const std::span<std::byte> sums = leads() ? reachable(values, 2) : std::span<std::byte>{};
    lower_.reduce(partial.call("all_reduce", elements), partial, values, sums.data());
    if (leads()) upper_->all_reduce_bytes(partial, sums);
    take_from_leader(sums.data(), values, elements, partial.dtype);
  }
}

template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::broadcast_bytes(const CollectiveCall& call, std::span<std::byte> values) const {
  by_shape([&](const auto& level) { level.broadcast_bytes(call, values); }, [&] { broadcast_on_levels(call, values); });
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::broadcast_on_levels(const CollectiveCall& call, std::span<std::byte> values) const {
  DIST_EXPECT(call.root < layout_->size());
  announce(call);
  const auto place = layout_->place_of(call.root);
  const auto broadcast = [&](const auto& level, std::size_t root) {
    CollectiveCall of_level = call;
    of_level.root = root;
    level.broadcast_bytes(of_level, values);
  };
  if (place.group == layout_->group() && place.member != 0) broadcast(patient_, place.member);
  if (leads()) broadcast(*upper_, place.group);
  broadcast(patient_, 0);
}

template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::all_gather_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                                                  std::span<const std::size_t> counts, std::size_t size,
                                                  std::span<std::byte> all) const {
  DIST_EXPECT(counts.size() == layout_->size());
  by_shape([&](const auto& level) { level.all_gather_bytes(call, mine, counts, size, all); },
           [&] {
             announce(call);
             std::vector<std::size_t> bytes(counts.begin(), counts.end());
             for (std::size_t& count : bytes) count *= size;
             gather_in_rank_order(mine, bytes, all);
           });
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::gather_values_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                                                     std::span<std::byte> all) const {
  by_shape([&](const auto& level) { level.gather_values_bytes(call, mine, all); },
           [&] {
             announce(call);
             gather_in_rank_order(mine, std::vector<std::size_t>(layout_->size(), mine.size()), all);
           });
}

template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::reduce_and_apply_bytes(const Record& reduction, std::span<const std::byte> gradient,
                                                        std::span<std::byte> mirror, detail::UseReduced update) const {
  by_shape([&](const auto& level) { level.reduce_and_apply_bytes(reduction, gradient, mirror, update); },
           [&] {
             const std::span<std::byte> result = leads() ? reachable(mirror, 1) : std::span<std::byte>{};
             const detail::Borrowed loan{patient_.communicator()};
             reduce_shares("reduce_and_apply", reduction, gradient, result.data(),
                           [&](std::size_t first, std::span<const std::byte> reduced) {
                             update(first, reduced);
                             give_to_leader(first * reduction.size,
                                            mirror.subspan(first * reduction.size, reduced.size()));
                           });
             gather_shares("end of reduce_and_apply", reduction.dtype, reduction.size, result, mirror);
           });
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::reduce_scatter_bytes(const Record& reduction, std::span<const std::byte> values,
                                                      detail::UseReduced use) const {
  by_shape([&](const auto& level) { level.reduce_scatter_bytes(reduction, values, use); },
           [&] {
             reduce_shares("reduce_scatter", reduction, values, nullptr, use);
             patient_.communicator().barrier();
           });
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::update_shards_bytes(const CollectiveCall& call, std::size_t size,
                                                     std::span<std::byte> mirror,
                                                     detail::FunctionRef<void(IndexRange)> update) const {
  by_shape([&](const auto& level) { level.update_shards_bytes(call, size, mirror, update); },
           [&] {
             const std::span<std::byte> result = leads() ? reachable(mirror, 1) : std::span<std::byte>{};
             const detail::Borrowed loan{patient_.communicator()};
             announce(call);
             patient_.communicator().publish(call, {.write = result.data()});
             for_each_share(call.elements, [&](IndexRange share) {
               update(share);
               give_to_leader(share.begin * size, mirror.subspan(share.begin * size, share.size() * size));
             });
             gather_shares("end of update_shards", call.dtype, size, result, mirror);
           });
}

template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::reduce_shares(std::string_view operation, const Record& reduction,
                                               std::span<const std::byte> values, std::byte* result,
                                               detail::UseReduced use) const {
  const auto& partial = static_cast<const Record&>(*reduction.partial);
  const auto& comm = patient_.communicator();
  const std::size_t elements = values.size() / reduction.size;
  const std::size_t bytes = elements * reduction.wide_size;
  const CollectiveCall call = reduction.call(operation, elements);
  const std::span<std::byte> sums = leads() ? comm.template stage<std::byte>(2, bytes) : std::span<std::byte>{};
  if (reduction.widens()) {
    AlignedBuffer<std::byte> wide(bytes);
    reduction.widen(wide.data(), values.data(), elements);
    lower_.reduce(call, partial, {wide.data(), wide.size()}, sums.data());
  } else {
    lower_.reduce(call, partial, values, sums.data());
  }
  if (leads())
    upper_->reduce_shards(operation, partial, sums, [&](std::size_t first, std::span<const std::byte> combined) {
      std::copy(combined.begin(), combined.end(), sums.data() + first * partial.size);
    });
  comm.publish(call, {.read = sums.data(), .write = result});
  const std::byte* const all_values = comm.template peer<std::byte>(0);
  for_each_share(elements, [&](IndexRange share) {
    detail::use_finished(reduction, share, all_values + share.begin * partial.size, nullptr, layout_->size(), use);
  });
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::gather_shares(std::string_view operation, std::string_view dtype, std::size_t size,
                                               std::span<std::byte> result, std::span<std::byte> mirror) const {
  patient_.communicator().barrier();
  if (leads()) upper_->gather_shards(operation, dtype, {result, size});
  take_from_leader(result.data(), mirror, mirror.size() / size, dtype);
}

template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::gather_in_rank_order(std::span<const std::byte> mine,
                                                      std::span<const std::size_t> counts,
                                                      std::span<std::byte> all) const {
  if (layout_->in_order()) return all_gather_by_group(mine, counts, counts, all);
  std::vector<std::size_t> counts_by_group(counts.size());
  for (std::size_t place = 0; place < counts.size(); ++place) counts_by_group[place] = counts[layout_->ranks()[place]];
  AlignedBuffer<std::byte> by_group(all.size());
  all_gather_by_group(mine, counts, counts_by_group, std::span<std::byte>{by_group.data(), by_group.size()});
  const std::byte* from = by_group.data();
  for (std::size_t place = 0; place < counts.size(); from += counts_by_group[place], ++place) {
    std::size_t before = 0;
    for (std::size_t rank = 0; rank < layout_->ranks()[place]; ++rank) before += counts[rank];
    std::copy_n(from, counts_by_group[place], all.data() + before);
  }
}
template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::all_gather_by_group(std::span<const std::byte> mine,
                                                     std::span<const std::size_t> counts,
                                                     std::span<const std::size_t> counts_by_group,
                                                     std::span<std::byte> by_group) const {
  std::vector<std::size_t> group_counts(layout_->groups());
  std::size_t place = 0;
  std::size_t before = 0;
  std::span<const std::size_t> counts_here;
  for (std::size_t group = 0; group < layout_->groups(); ++group) {
    const std::size_t members = layout_->members(group).size();
    for (std::size_t member = 0; member < members; ++member) group_counts[group] += counts_by_group[place + member];
    if (group == layout_->group()) counts_here = counts_by_group.subspan(place, members);
    if (group < layout_->group()) before += group_counts[group];
    place += members;
  }
  DIST_EXPECT(counts[layout_->rank()] == mine.size());
  const std::span<std::byte> of_group = by_group.subspan(before, group_counts[layout_->group()]);
  const auto gather = [](const auto& level, std::span<const std::byte> part, std::span<const std::size_t> parts,
                         std::span<std::byte> whole) {
    level.all_gather_bytes({.operation = "all_gather",
                            .elements = whole.size(),
                            .dtype = dtype_name<std::uint8_t>,
                            .counts = detail::hash_of_numbers(parts)},
                           part, parts, 1, whole);
  };
  gather(patient_, mine, counts_here, of_group);
  if (leads()) gather(*upper_, of_group, group_counts, by_group);
  patient_.broadcast_bytes({.operation = "broadcast", .elements = by_group.size(), .dtype = dtype_name<std::uint8_t>},
                           by_group);
}

template <class Lower, class Upper>
void Hierarchical<Lower, Upper>::take_from_leader(const std::byte* from, std::span<std::byte> values,
                                                  std::size_t elements, std::string_view dtype) const {
  const auto& comm = patient_.communicator();
  const detail::Borrowed loan{comm};
  comm.publish({.operation = "values of all groups", .elements = elements, .dtype = dtype}, {.read = from});
  if (const std::byte* const theirs = comm.template peer<std::byte>(0); theirs != values.data())
    std::copy_n(theirs, values.size(), values.data());
  comm.barrier();
}

}  // namespace dist
