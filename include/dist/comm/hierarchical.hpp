/// Collectives of groups of groups: the replicas of each process and the processes, the processes of each node and the
/// nodes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/communication_options.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/group_layout.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/hash.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// A member of a group of groups, whose collectives are `Ops`; it must not outlive them.
template <class Ops>
class HierarchicalCommunicator {
 public:
  explicit HierarchicalCommunicator(const Ops& ops) : ops_(&ops) {}

  [[nodiscard]] std::size_t rank() const noexcept { return ops_->layout().rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return ops_->layout().size(); }
  void barrier() const { ops_->barrier(); }
  void begin_attempt() const noexcept { ops_->begin_attempt(); }
  void cancel(const FailureNotice& notice) const noexcept { ops_->cancel(notice); }
  void cancel(const std::exception_ptr& why) const noexcept { ops_->cancel(why); }
  /// What calls are parts of, on all levels.
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

/// Joins the collectives within each group, `Lower`, whose members share a window, with those between member 0 of all
/// groups, `Upper`, which tell how they divide elements (DividesShards): the members of a group each reduce a part of
/// its values into memory of member 0, which meets those of the other groups, and each takes the result from there.
/// Where one of the levels has only one member, the other one does everything.
///
/// For each element of the result, a group of R members accesses 3R - 1 elements in memory; an all-reduce in the group and
/// a broadcast of the sum would access 4R - 2.
///
/// Each group is summed in its own order first, so the bits differ from those of a sum in rank order; they are the same
/// on every member and in every run.
template <class Lower, class Upper>
class Hierarchical {
  static_assert(SharesWindow<CommunicatorOf<Lower>> && DividesShards<Upper>);

 public:
  /// `upper` is for member 0 of a group, where there are several groups. `layout` must outlive the collectives. A
  /// member waits for others for `timeout`, 0 meaning as long as it takes; for what happens on another level a little
  /// longer, so that the members that know best which one is missing are the first to say so.
  Hierarchical(const GroupLayout& layout, const Lower& lower, const std::optional<Upper>& upper,
               std::chrono::nanoseconds timeout)
      : layout_(&layout),
        lower_(lower.with_timeout(timeout)),
        patient_(lower.with_timeout(detail::longer(timeout, leader_timeout_factor))) {
    if (upper) upper_.emplace(upper->with_timeout(is_flat() ? timeout : detail::longer(timeout, 1)));
    DIST_EXPECT(upper_.has_value() || is_single_group() || lower_.communicator().rank() != 0);
  }

  [[nodiscard]] HierarchicalCommunicator<Hierarchical> communicator() const noexcept {
    return HierarchicalCommunicator<Hierarchical>{*this};
  }
  [[nodiscard]] const GroupLayout& layout() const noexcept { return *layout_; }
  /// The collectives of this member's group.
  [[nodiscard]] const Lower& lower() const noexcept { return lower_; }
  /// Those between the groups, on the members that take part there.
  [[nodiscard]] const std::optional<Upper>& upper() const noexcept { return upper_; }

  /// The same, waiting longer or shorter for other members (spec H13).
  [[nodiscard]] Hierarchical with_timeout(std::chrono::nanoseconds timeout) const {
    return {*layout_, lower_, upper_, timeout};
  }

  /// Calls `use(communicator)` with this member's communicator on each level that it takes part in.
  template <class Use>
  void for_each_level(Use&& use) const {
    use(lower_.communicator());
    if (upper_) use(upper_->communicator());
  }

  /// On all levels: those that know already are not told again.
  void begin_attempt() const noexcept {
    lower_.begin_attempt();
    if (upper_) upper_->begin_attempt();
  }
  void cancel(const FailureNotice& notice) const noexcept {
    lower_.cancel(notice);
    if (upper_) upper_->cancel(notice);
  }
  /// Members that are threads of one process meet on the lowest level only.
  void cancel(const std::exception_ptr& why) const noexcept { lower_.cancel(why); }
  [[nodiscard]] bool is_broken() const noexcept { return lower_.is_broken() || (upper_ && upper_->is_broken()); }

  /// All members are about to make this call: those that make another one, and all others, get a CollectiveMismatch,
  /// here or at their next collective.
  void agree(const CollectiveCall& call) const {
    reporting_failures([&] { announce(call); });
  }

  /// The same, and no member goes on before it is known that all make this call.
  void meet(const CollectiveCall& call) const {
    reporting_failures([&] {
      announce(call);
      if (!is_single_group()) patient_.communicator().barrier();
    });
  }

  /// Returns once every member has called it. A collective call.
  void barrier() const {
    by_shape([](const auto& level) { level.communicator().barrier(); },
             [&] {
               lower_.communicator().barrier();
               if (leads()) upper_->communicator().barrier();
               patient_.communicator().barrier();
             });
  }

  template <class T, ReduceOp<T> Op>
  void all_reduce(Op op, std::span<T> values) const {
    by_shape([&](const auto& level) { level.all_reduce(op, values); },
             [&] {
               if constexpr (std::same_as<Accumulator<T>, T>) {
                 all_reduce_on_levels(op, values);
               } else {
                 AlignedBuffer<Accumulator<T>> wide(values.size());
                 std::copy(values.begin(), values.end(), wide.data());
                 all_reduce_on_levels(op, std::span<Accumulator<T>>{wide.data(), wide.size()});
                 for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(wide.data()[i]);
               }
             });
  }

  template <class T>
  void broadcast(std::size_t root, std::span<T> values) const {
    DIST_EXPECT(root < layout_->size());
    by_shape([&](const auto& level) { level.broadcast(root, values); },
             [&] {
               announce({.operation = "broadcast", .elements = values.size(), .dtype = dtype_name<T>, .root = root});
               const auto place = layout_->place_of(root);
               if (place.group == layout_->group() && place.member != 0) patient_.broadcast(place.member, values);
               if (leads()) upper_->broadcast(place.group, values);
               patient_.broadcast(0, values);
             });
  }

  template <class T>
  void all_gather(std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) const {
    DIST_EXPECT(counts.size() == layout_->size());
    by_shape([&](const auto& level) { level.all_gather(mine, counts, all); },
             [&] {
               announce({.operation = "all_gather",
                         .elements = all.size(),
                         .dtype = dtype_name<T>,
                         .counts = detail::hash_of_numbers(counts)});
               gather_in_rank_order(mine, counts, all);
             });
  }

  template <class T>
  void all_gather_values(std::string_view operation, const T& mine, std::span<T> all_values) const {
    static_assert(std::is_trivially_copyable_v<T>);
    by_shape([&](const auto& level) { level.all_gather_values(operation, mine, all_values); },
             [&] {
               announce({.operation = operation, .elements = sizeof(T), .dtype = "exchanged bytes"});
               const std::vector<std::size_t> counts(layout_->size(), sizeof(T));
               gather_in_rank_order(bytes_of<const std::uint8_t>(std::span<const T>{&mine, 1}),
                                    std::span<const std::size_t>{counts}, bytes_of<std::uint8_t>(all_values));
             });
  }

  /// The groups share the elements, and the members of a group its part of them.
  template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
  void reduce_and_apply(Op op, std::span<const T> gradient, std::span<T> mirror, const Update& update) const {
    by_shape([&](const auto& level) { level.reduce_and_apply(op, gradient, mirror, update); },
             [&] {
               const std::span<T> result = leads() ? reachable(mirror, 1) : std::span<T>{};
               const detail::Borrowed loan{patient_.communicator()};
               reduce_shares("reduce_and_apply", op, gradient, result.data(),
                             [&](std::size_t first, std::span<const T> reduced) DIST_INLINE_LAMBDA {
                               const std::span<T> mine = mirror.subspan(first, reduced.size());
                               detail::update_block(update, first, mine, reduced);
                               give_to_leader(first, mine);
                             });
               gather_shares("end of reduce_and_apply", result, mirror);
             });
  }

  template <class T, ReduceOp<T> Op, class Use>
  void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
    by_shape([&](const auto& level) { level.reduce_scatter(op, values, use); },
             [&] {
               reduce_shares("reduce_scatter", op, values, static_cast<T*>(nullptr), use);
               patient_.communicator().barrier();
             });
  }
  template <class T, ElementUpdate<T> Update>
  void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
    by_shape([&](const auto& level) { level.update_shards(gradients, mirror, update); },
             [&] {
               const CollectiveCall call{
                   .operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>};
               const std::span<T> result = leads() ? reachable(mirror, 1) : std::span<T>{};
               const detail::Borrowed loan{patient_.communicator()};
               lower_.communicator().publish(call, {});
               if (leads()) upper_->communicator().announce(call);
               patient_.communicator().publish(call, {.write = result.data()});
               for_each_share(mirror.size(), [&](IndexRange share) {
                 const std::span<T> mine = mirror.subspan(share.begin, share.size());
                 detail::update_range(update, share.begin, mine, gradients.subspan(share.begin, share.size()));
                 give_to_leader(share.begin, mine);
               });
               gather_shares("end of update_shards", result, mirror);
             });
  }

 private:
  template <class Ops>
  friend struct detail::NeighborExchange;

  [[nodiscard]] bool is_single_group() const noexcept { return layout_->groups() == 1; }
  /// Every group has one member: all decide alike, also where one group has more than another.
  [[nodiscard]] bool is_flat() const noexcept { return layout_->groups() == layout_->size(); }
  [[nodiscard]] bool leads() const noexcept { return lower_.communicator().rank() == 0; }

  template <class Byte, class T>
  [[nodiscard]] static std::span<Byte> bytes_of(std::span<T> values) noexcept {
    return {reinterpret_cast<Byte*>(values.data()), values.size_bytes()};
  }

  void announce(const CollectiveCall& call) const {
    lower_.communicator().publish(call, {});
    if (!is_single_group() && leads()) upper_->communicator().announce(call);
  }

  /// Calls `body`, which meets the members of one level after the other. If it throws, the level that does not know why
  /// is told.
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

  /// Calls `use` with the collectives of one level if that level has all members. Else it calls `on_levels`, which meets the
  /// members of one level after the other.
  template <class Use, class OnLevels>
  void by_shape(Use&& use, OnLevels&& on_levels) const {
    if (!is_single_group()) return is_flat() ? use(*upper_) : reporting_failures(on_levels);
    if constexpr (detail::has_levels<CommunicatorOf<Lower>>)
      reporting_failures([&] { use(lower_); });
    else
      use(lower_);
  }

  template <class T, class Op>
  void all_reduce_on_levels(Op, std::span<T> values) const {
    if (values.size_bytes() <= CommunicatorOf<Lower>::exchange_capacity) {
      lower_.all_reduce(detail::Unfinished<Op>{}, values);
      if (leads()) upper_->all_reduce(detail::Unfinished<Op>{}, values);
      patient_.broadcast(0, values);
    } else {
      const std::span<T> sums = leads() ? reachable(values, 2) : std::span<T>{};
      lower_.reduce(
          {.operation = "all_reduce", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>},
          detail::Unfinished<Op>{}, std::span<const T>{values}, sums);
      if (leads()) upper_->all_reduce(detail::Unfinished<Op>{}, sums);
      take_from_leader(sums.data(), values);
    }
    for (T& value : values) value = Op::finish(value, layout_->size());
  }

  template <class T>
  void gather_in_rank_order(std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) const {
    if (layout_->in_order()) return all_gather_by_group(mine, counts, counts, all);
    std::vector<std::size_t> counts_by_group(counts.size());
    for (std::size_t place = 0; place < counts.size(); ++place)
      counts_by_group[place] = counts[layout_->ranks()[place]];
    AlignedBuffer<T> by_group(all.size());
    all_gather_by_group(mine, counts, counts_by_group, std::span<T>{by_group.data(), by_group.size()});
    const T* from = by_group.data();
    for (std::size_t place = 0; place < counts.size(); from += counts_by_group[place], ++place) {
      std::size_t before = 0;
      for (std::size_t rank = 0; rank < layout_->ranks()[place]; ++rank) before += counts[rank];
      std::copy_n(from, counts_by_group[place], all.data() + before);
    }
  }
  template <class T>
  void all_gather_by_group(std::span<const T> mine, std::span<const std::size_t> counts,
                           std::span<const std::size_t> counts_by_group, std::span<T> by_group) const {
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
    const std::span<T> of_group = by_group.subspan(before, group_counts[layout_->group()]);
    patient_.all_gather(mine, counts_here, of_group);
    if (leads()) upper_->all_gather(std::span<const T>{of_group}, std::span<const std::size_t>{group_counts}, by_group);
    patient_.broadcast(0, by_group);
  }

  /// These values, where the members of the group can reach them, or else memory for as many that they can reach.
  template <class T>
  [[nodiscard]] std::span<T> reachable(std::span<T> values, int stage) const {
    const auto& comm = lower_.communicator();
    return comm.holds(values.data(), values.size_bytes()) ? values : comm.template stage<T>(stage, values.size());
  }

  /// Calls `visit(share)` with the elements that this member reduces and updates: a part of each shard of its group.
  template <class Visit>
  void for_each_share(std::size_t elements, Visit&& visit) const {
    Upper::for_each_shard(elements, layout_->group(), layout_->groups(), [&](IndexRange shard) {
      const auto& comm = lower_.communicator();
      const IndexRange within = shard_of(shard.size(), comm.rank(), comm.size(), cache_line);
      if (within.size() != 0) visit(IndexRange{shard.begin + within.begin, shard.begin + within.end});
    });
  }

  /// Calls `use(first, reduced)` with blocks of this member's shares of the reduction. Member 0 lends `result` to the
  /// group meanwhile. `operation` is the collective that the members are in.
  template <class T, class Op, class Use>
  void reduce_shares(std::string_view operation, Op op, std::span<const T> values, T* result, Use&& use) const {
    using W = Accumulator<T>;
    const auto& comm = patient_.communicator();
    const CollectiveCall call{
        .operation = operation, .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>};
    const std::span<W> sums = leads() ? comm.template stage<W>(2, values.size()) : std::span<W>{};
    if constexpr (std::same_as<W, T>) {
      lower_.reduce(call, detail::Unfinished<Op>{}, values, sums);
    } else {
      AlignedBuffer<W> wide(values.size());
      std::copy(values.begin(), values.end(), wide.data());
      lower_.reduce(call, detail::Unfinished<Op>{}, std::span<const W>{wide.data(), wide.size()}, sums);
    }
    if (leads())
      upper_->reduce_shards(operation, detail::Unfinished<Op>{}, std::span<const W>{sums},
                            [&](std::size_t first, std::span<const W> combined) {
                              std::copy(combined.begin(), combined.end(), sums.data() + first);
                            });
    comm.publish(call, {.read = sums.data(), .write = result});
    const W* const all_values = comm.template peer<W>(0);
    for_each_share(values.size(), [&](IndexRange share) {
      detail::finish_sums<T>(op, layout_->size(), std::span<const W>{all_values + share.begin, share.size()},
                             share.begin, use);
    });
  }
  /// Copies elements from `first` on to those that member 0 lends.
  template <class T>
  DIST_ALWAYS_INLINE void give_to_leader(std::size_t first, std::span<T> mine) const {
    T* const theirs = patient_.communicator().template peer_to_write<T>(0) + first;
    if (theirs != mine.data()) std::copy(mine.begin(), mine.end(), theirs);
  }
  /// Gives all members the shares of all, which member 0 of each group has in `result`.
  template <class T>
  void gather_shares(std::string_view operation, std::span<T> result, std::span<T> mirror) const {
    patient_.communicator().barrier();
    if (leads()) upper_->gather_shards(operation, result);
    take_from_leader(result.data(), mirror);
  }
  /// Gives every member of the group the values that member 0 has at `from`, where all can reach them.
  template <class T>
  void take_from_leader(const T* from, std::span<T> values) const {
    const auto& comm = patient_.communicator();
    const detail::Borrowed loan{comm};
    comm.publish({.operation = "values of all groups", .elements = values.size(), .dtype = dtype_name<T>},
                 {.read = from});
    if (const T* const theirs = comm.template peer<T>(0); theirs != values.data())
      std::copy_n(theirs, values.size(), values.data());
    comm.barrier();
  }

  /// In units of 5 s or of the timeout, whichever is shorter; more than that of the level above.
  static constexpr int leader_timeout_factor = 8;

  const GroupLayout* layout_;
  Lower lower_;
  Lower patient_;  // the same, for waiting while member 0 is with the other groups
  std::optional<Upper> upper_;
};

}  // namespace dist
