#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/comm/communicator.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/memory_collectives.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>

namespace dist {

/// All-reduce between the processes of one node: ThreadAllReduce in place, for operands in the processes' windows,
/// where a strategy keeps variables and gradients. Other operands are copied to the window and back.
struct NodeAllReduce {
  static constexpr std::string_view name = "NodeAllReduce";

  /// True if the policy supports communicator `C`.
  template <class C>
  static constexpr bool fits = SharesWindow<C>;

  /// The collectives of one process or replica, a member of `C`.
  template <class C>
  class On : public Membership<C>, public detail::OnBytes<On<C>>, public detail::GathersBytes<On<C>> {
    static_assert(fits<C>,
                  "NodeAllReduce needs processes that map each other's memory: use a communicator that models "
                  "SharesWindow, such as NodeCommunicator");
    using InWindow = ThreadAllReduce::On<C>;

   public:
    explicit On(C communicator) : Membership<C>(communicator), in_window_(communicator) {}

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    void all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const;
    /// Reduces all members' values to `sums` of member 0, which is in its window and may be its values. Each member
    /// reduces a part; other members' `sums` are not used. A collective call, announced as `call`.
    void reduce(const CollectiveCall& call, const Reduction& reduction, std::span<const std::byte> values,
                std::byte* sums) const;
    void broadcast_bytes(const CollectiveCall& call, std::span<std::byte> values) const;
    void all_gather_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                          std::span<const std::size_t> counts, std::size_t size, std::span<std::byte> all) const {
      const Staged<const std::byte> staged{comm_, 0, mine};
      in_window_.all_gather_bytes(call, staged.elements(), counts, size, all);
    }
    void gather_values_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                             std::span<std::byte> all) const {
      if (mine.size() <= C::exchange_capacity) return in_window_.gather_values_bytes(call, mine, all);
      const Staged<const std::byte> staged{comm_, 0, mine};
      in_window_.gather_values_bytes(call, staged.elements(), all);
    }
    void reduce_and_apply_bytes(const Reduction& reduction, std::span<const std::byte> gradient,
                                std::span<std::byte> mirror, detail::UseReduced update) const;
    void reduce_scatter_bytes(const Reduction& reduction, std::span<const std::byte> values,
                              detail::UseReduced use) const {
      const Staged<const std::byte> staged{comm_, 0, values};
      in_window_.reduce_scatter_bytes(reduction, staged.elements(), use);
    }
    void update_shards_bytes(const CollectiveCall& call, std::size_t size, std::span<std::byte> mirror,
                             detail::FunctionRef<void(IndexRange)> update) const;

   private:
    /// Below this number of bytes, copying to the window is faster than another meeting of the processes.
    static constexpr std::size_t in_parts_from = std::size_t{128} << 10;

    /// All-reduce of several processes' replicas with few copies: in place if all operands are in windows. Otherwise
    /// each process sums its replicas' values into one stage, and each replica combines its part of all stages and
    /// writes it to all operands of its process.
    template <class Members>
    void all_reduce_in_parts(const Members& members, const Reduction& reduction, std::span<std::byte> values) const;

    /// Calls `use(block)` for blocks of `range`. Elements have `size` bytes.
    template <class Use>
    static void for_each_block(IndexRange range, std::size_t size, Use&& use) {
      for (std::size_t first = range.begin; first < range.end; first += detail::block_bytes / size)
        use(IndexRange{first, std::min(first + detail::block_bytes / size, range.end)});
    }

    /// Values in the window: the originals, or a copy.
    template <class T>
    class Staged {
      using Element = std::remove_const_t<T>;

     public:
      Staged(const C& comm, int which, std::span<T> values) : values_(values), staged_(values) {
        if (values.empty() || comm.holds(values.data(), values.size_bytes())) return;
        const std::span<Element> copy = comm.template stage<Element>(which, values.size());
        std::copy(values.begin(), values.end(), copy.begin());
        staged_ = copy;
      }
      [[nodiscard]] std::span<T> elements() const noexcept { return staged_; }
      /// Copies changed elements of the values to the copy.
      void update(std::size_t first, std::size_t count) const {
        if (staged_.data() != values_.data()) std::copy_n(values_.data() + first, count, staged_.data() + first);
      }
      void copy_back() const {
        if (staged_.data() != values_.data()) std::copy(staged_.begin(), staged_.end(), values_.begin());
      }

     private:
      std::span<T> values_;
      std::span<T> staged_;
    };

    using Membership<C>::comm_;

    InWindow in_window_;
  };
};

template <class C>
void NodeAllReduce::On<C>::all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const {
  if (values.size() <= C::exchange_capacity) return in_window_.all_reduce_bytes(reduction, values);
  if constexpr (detail::has_levels<C>)
    if (!reduction.widens() && values.size() >= in_parts_from && comm_.local().size() > 1 && comm_.processes() > 1 &&
        comm_.processes() < 4 * comm_.local().size())
      return all_reduce_in_parts(comm_, reduction, values);
  const Staged<std::byte> staged{comm_, 0, values};
  in_window_.all_reduce_bytes(reduction, staged.elements());
  staged.copy_back();
}

template <class C>
void NodeAllReduce::On<C>::reduce_and_apply_bytes(const Reduction& reduction, std::span<const std::byte> gradient,
                                                  std::span<std::byte> mirror, detail::UseReduced update) const {
  const Staged<const std::byte> gradients{comm_, 0, gradient};
  const Staged<std::byte> mirrors{comm_, 1, mirror};
  in_window_.reduce_and_apply_bytes(reduction, gradients.elements(), mirrors.elements(),
                                    [&](std::size_t first, std::span<const std::byte> reduced) {
                                      update(first, reduced);
                                      mirrors.update(first * reduction.size, reduced.size());
                                    });
  mirrors.copy_back();
}
template <class C>
void NodeAllReduce::On<C>::update_shards_bytes(const CollectiveCall& call, std::size_t size,
                                               std::span<std::byte> mirror,
                                               detail::FunctionRef<void(IndexRange)> update) const {
  const Staged<std::byte> staged{comm_, 0, mirror};
  in_window_.update_shards_bytes(call, size, staged.elements(), [&](IndexRange block) {
    update(block);
    staged.update(block.begin * size, block.size() * size);
  });
  staged.copy_back();
}

template <class C>
void NodeAllReduce::On<C>::broadcast_bytes(const CollectiveCall& call, std::span<std::byte> values) const {
  const Staged<std::byte> staged{comm_, 0, values};
  in_window_.broadcast_bytes(call, staged.elements());
  staged.copy_back();
}

template <class C>
void NodeAllReduce::On<C>::reduce(const CollectiveCall& call, const Reduction& reduction,
                                  std::span<const std::byte> values, std::byte* sums) const {
  const Staged<const std::byte> staged{comm_, 0, values};
  const detail::Borrowed loan{comm_};
  comm_.publish(call, {.read = staged.elements().data(), .write = sums});
  const IndexRange mine =
      shard_of(values.size() / reduction.size, comm_.rank(), comm_.size(), cache_line / reduction.size);
  if (mine.size() != 0)
    reduction.reduce(detail::operands_of(comm_), mine,
                     comm_.template peer_to_write<std::byte>(0) + mine.begin * reduction.size,
                     reduction.finished_for(comm_.size()));
  comm_.barrier();
}

template <class C>
template <class Members>
void NodeAllReduce::On<C>::all_reduce_in_parts(const Members& members, const Reduction& reduction,
                                               std::span<std::byte> values) const {
  const std::size_t size = reduction.size;
  const std::size_t elements = values.size() / size;
  const CollectiveCall call = reduction.call("all_reduce", elements);
  const auto here = members.local();
  const bool brings_stage = here.rank() == 0 && !members.holds(values.data(), values.size());
  std::byte* const stage = brings_stage ? members.template stage<std::byte>(2, values.size()).data() : nullptr;
  const detail::Borrowed loan{members};
  const Operand values_of_mine{.read = values.data(), .write = values.data()};
  members.publish(call, values_of_mine);
  if (members.count_reachable(1) == members.size()) {
    detail::reduce_in_place(reduction, members, shard_of(elements, members.rank(), members.size(), cache_line / size));
    return members.barrier();
  }
  if (members.count_reachable(here.size()) != 0) {  // some processes have no stage
    const Staged<std::byte> staged{members, 0, values};
    in_window_.all_reduce_bytes(reduction, staged.elements());
    return staged.copy_back();
  }
  // The operands are lent only within the process, while they are used, so they need not outlive this function.
  const detail::Borrowed lent{here};
  const IndexRange part = shard_of(elements, here.rank(), here.size(), cache_line / size);
  here.publish(call, {.read = values.data(), .write = stage});
  if (part.size() != 0)
    reduction.reduce(detail::operands_of(here), part, here.template peer_to_write<std::byte>(0) + part.begin * size, 0);
  members.publish(call, {.read = stage});  // all stages are complete
  here.publish(call, values_of_mine);
  const detail::OperandsOfMembers<const std::byte*> stages{
      members.processes(), members.processes(),
      [&](std::size_t process) { return members.template peer<std::byte>(process * here.size()); }};
  for_each_block(part, size, [&](IndexRange block) {
    const std::span<std::byte> mine = values.subspan(block.begin * size, block.size() * size);
    reduction.reduce(stages, block, mine.data(), reduction.finished_for(members.size()));
    for (std::size_t replica = 0; replica < here.size(); ++replica)
      if (replica != here.rank())
        std::copy(mine.begin(), mine.end(), here.template peer_to_write<std::byte>(replica) + block.begin * size);
  });
  here.barrier();
}

}  // namespace dist

#ifdef DIST_COMPILED
#include <dist/comm/node/node_replicas.hpp>
extern template class dist::SharedMemoryCollectives<dist::NodeCommunicator>;
extern template class dist::ThreadAllReduce::On<dist::NodeCommunicator>;
extern template class dist::SharedMemoryCollectives<dist::NodeReplicaCommunicator>;
extern template class dist::ThreadAllReduce::On<dist::NodeReplicaCommunicator>;
extern template class dist::NodeAllReduce::On<dist::NodeCommunicator>;
extern template class dist::NodeAllReduce::On<dist::NodeReplicaCommunicator>;
#endif
