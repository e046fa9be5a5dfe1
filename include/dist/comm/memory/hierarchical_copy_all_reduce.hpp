#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/memory/shared_memory_collectives.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// Reduction in two groups of replicas that lie near each other, as on machines whose devices are linked in two groups
/// (spec H06): in each group one replica combines the group's values, the two exchange what they have, and each group
/// copies from its own. The replicas that combine change from one tensor of a step to the next, so that all take part.
///
/// Sums are made group by group, so the bits differ from those of other policies; they are the same on every replica
/// and in every run.
///
/// Memory of devices is reduced in the same groups and order by `OnDevices<Device>`.
struct HierarchicalCopyAllReduce {
  static constexpr std::string_view name = "HierarchicalCopyAllReduce";
  static constexpr bool sums_in_rank_order = false;

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = SharesMemory<C>;

  /// The policy where replicas are on devices whose memory the host does not reach: a header for these devices has it.
  template <class Device>
  struct OnDevices : detail::NoOps {
    [[nodiscard]] static constexpr bool require_header() {
      static_assert(sizeof(Device) == 0,
                    "HierarchicalCopyAllReduce of memory of GPUs has a header of its own: include "
                    "<dist/comm/cuda/policies.cuh>");
      return false;
    }
  };

  template <class C>
  class On : public SharedMemoryCollectives<C> {
    static_assert(fits<C>,
                  "HierarchicalCopyAllReduce needs replicas in one address space: use a communicator that models "
                  "SharesMemory, such as ThreadCommunicator");

   public:
    explicit On(C communicator)
        : SharedMemoryCollectives<C>(std::move(communicator)), tensors_(std::make_shared<std::size_t>(0)) {}

    /// The same collectives, which wait for other members that long: they go on counting tensors where these are.
    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      On changed{comm_.with_timeout(timeout)};
      changed.tensors_ = tensors_;
      return changed;
    }

    template <class T, ReduceOp<T> Op>
    void all_reduce(Op op, std::span<T> values) const {
      const std::size_t main = *tensors_ % comm_.size();
      AlignedBuffer<Accumulator<T>> sums;
      const detail::Borrowed loan{comm_};
      sums = reduce_in_groups<T>("all_reduce", op, main, values);
      ++*tensors_;  // now that all have come: members that caught an error agree with the others
      const std::span<const Accumulator<T>> total = across_groups<T>(op, main, sums, values.size());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(total[i]);
      comm_.barrier();
    }

    /// Replica 0 updates, always the same, as it keeps the slots of the optimizer; the other mirrors are copies.
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op op, std::span<const T> gradient, std::span<T> mirror, const Update& update) const {
      AlignedBuffer<Accumulator<T>> sums;
      const detail::Borrowed loan{comm_};
      sums = reduce_in_groups<T>("reduce_and_apply", op, 0, gradient);
      on_first_replica<T>(across_groups<T>(op, 0, sums, mirror.size()),
                          [&](std::size_t first, std::span<const T> reduced) {
                            detail::update_range(update, first, mirror.subspan(first, reduced.size()), reduced);
                          });
      this->broadcast(0, mirror);
    }

    template <class T, ReduceOp<T> Op, class Use>
    void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
      AlignedBuffer<Accumulator<T>> sums;
      const detail::Borrowed loan{comm_};
      sums = reduce_in_groups<T>("reduce_scatter", op, 0, values);
      on_first_replica<T>(across_groups<T>(op, 0, sums, values.size()), use);
      comm_.barrier();
    }

    template <class T, ElementUpdate<T> Update>
    void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
      const detail::Borrowed loan{comm_};
      comm_.publish({.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>}, {});
      if (comm_.rank() == 0) detail::update_range(update, 0, mirror, gradients);
      this->broadcast(0, mirror);
    }

   protected:
    using SharedMemoryCollectives<C>::comm_;

    /// The first of two groups; the second has the rest.
    [[nodiscard]] IndexRange first_group() const noexcept { return {0, comm_.size() / 2}; }
    [[nodiscard]] IndexRange second_group() const noexcept { return {comm_.size() / 2, comm_.size()}; }
    [[nodiscard]] IndexRange my_group() const noexcept {
      return comm_.rank() < comm_.size() / 2 ? first_group() : second_group();
    }
    /// The replica that combines for a group, where `main` does so for its own.
    [[nodiscard]] static std::size_t main_of(IndexRange group, std::size_t main) noexcept {
      return group.begin + main % group.size();
    }
    [[nodiscard]] bool combines(std::size_t main) const noexcept { return comm_.rank() == main_of(my_group(), main); }

    std::shared_ptr<std::size_t> tensors_;  // reduced in this step; shared by copies of this member's collectives

   private:
    /// What the replicas that combine have of their groups' values; nothing elsewhere.
    template <class T, class Op>
    [[nodiscard]] AlignedBuffer<Accumulator<T>> reduce_in_groups(std::string_view operation, Op op, std::size_t main,
                                                                 std::span<const T> values) const {
      // The replica that combines is a part of the call: replicas that have reduced different numbers of tensors do not
      // agree.
      comm_.publish({.operation = operation,
                     .reduction = Op::name,
                     .elements = values.size(),
                     .dtype = dtype_name<T>,
                     .root = main},
                    {.read = values.data()});
      if (!combines(main)) return {};
      AlignedBuffer<Accumulator<T>> sums(values.size());
      const std::span<Accumulator<T>> combined{sums.data(), values.size()};
      const IndexRange group = my_group();
      std::copy_n(comm_.template peer<T>(group.begin), values.size(), combined.data());
      for (std::size_t rank = group.begin + 1; rank < group.end; ++rank)
        detail::combine(op, combined, comm_.template peer<T>(rank));
      return sums;
    }

    /// The result of both groups, which the replica that combined for this group keeps until the next collective.
    template <class T, class Op>
    [[nodiscard]] std::span<const Accumulator<T>> across_groups(Op op, std::size_t main,
                                                                AlignedBuffer<Accumulator<T>>& sums,
                                                                std::size_t elements) const {
      using Wide = Accumulator<T>;
      const CollectiveCall call{.operation = "exchange of groups", .elements = elements, .dtype = dtype_name<T>};
      AlignedBuffer<Wide> total(combines(main) ? elements : 0);
      const detail::Borrowed loan{comm_};  // of `total`, which goes first
      comm_.publish(call, {.read = sums.data()});
      if (combines(main)) {
        const Wide* const first =
            first_group().size() == 0 ? nullptr : comm_.template peer<Wide>(main_of(first_group(), main));
        const Wide* const second = comm_.template peer<Wide>(main_of(second_group(), main));
        for (std::size_t i = 0; i < elements; ++i)
          total.data()[i] = Op::finish(first == nullptr ? second[i] : op(first[i], second[i]), comm_.size());
      }
      comm_.publish(call, {.read = total.data()});
      sums = std::move(total);  // the peers have come: none reads the group's sums any more
      return {comm_.template peer<Wide>(main_of(my_group(), main)), elements};
    }

    /// Calls `use(first, reduced)` with blocks of `total`, rounded to T, on replica 0.
    template <class T, class Use>
    void on_first_replica(std::span<const Accumulator<T>> total, Use&& use) const {
      if (comm_.rank() != 0) return;
      T block[detail::block_elements<T>];
      for (std::size_t first = 0; first < total.size(); first += detail::block_elements<T>) {
        const std::size_t count = std::min(detail::block_elements<T>, total.size() - first);
        for (std::size_t i = 0; i < count; ++i) block[i] = static_cast<T>(total[first + i]);
        use(first, std::span<const T>{block, count});
      }
    }
  };
};

}  // namespace dist
